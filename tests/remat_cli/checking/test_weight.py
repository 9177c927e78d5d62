"""What a process holds, counted while something large comes and goes: in a process where nothing else does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from remat_cli.checking.feeds import draw_feeds
from remat_cli.checking.processes import Bench
from remat_cli.checking.weight import COUNTED, mapped_now, resident
from remat_cli.ingest import ingest
from remat_cli.model.sessions import STRICT
from tests.remat_cli.random_models import random_model

LARGE = 80_000_000
HELD = f"""
import numpy as np
from remat_cli.checking.weight import resident_now, resident_peak

before = resident_now()
held = np.ones({LARGE}, dtype=np.uint8)
del held
print(resident_peak() - before)
print(resident_peak() - before)  # it is still the most there was
"""


def test_what_came_and_went_is_in_the_peak() -> None:
    said = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True).stdout
    grown = [int(line) for line in said.split()]
    assert len(grown) == 2
    assert all(0.95 * LARGE <= each <= 1.2 * LARGE for each in grown)


def test_pages_of_a_mapped_file_are_told_apart(tmp_path: Path) -> None:
    """Weights in a file of their own were counted twice: as weights, and as what the first run reads."""
    size = 16 << 20
    (tmp_path / "weights").write_bytes(bytes(size))
    before = mapped_now()
    mapped = np.memmap(tmp_path / "weights", np.uint8, "r")
    assert int(mapped.max()) == 0
    assert mapped_now() - before > 0.9 * size


def test_pages_of_code_are_not_told_apart() -> None:
    """What a run brings in of the runtime's code is held for that run: libraries are most of what is mapped here."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    files = next(1024 * int(fields[1]) for fields in lines if fields[0] == "RssFile:")
    assert 0 <= mapped_now() < files / 2


BARE = """
import sys
from profiles.cuda import session
from profiles.strict import strict_options
from profiles.system import let_go

options = strict_options()
options.log_severity_level = 4
print("begun", flush=True)
input()
made = session(sys.argv[1], options, ["CPUExecutionProvider"])
let_go()
print("made", flush=True)
input()
"""


@pytest.mark.skipif(not COUNTED, reason="only Linux counts what another process holds")
def test_what_a_session_holds_has_nothing_of_the_looking_at_it(tmp_path: Path) -> None:
    """A process that read its own count held a megabyte for that, which was taken for the session's."""
    path = tmp_path / "m.onnx"
    path.write_bytes(random_model(1).SerializeToString())
    with subprocess.Popen(
        [sys.executable, "-c", BARE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as bare:
        assert bare.stdin
        assert bare.stdout
        held = []
        for said in ("begun", "made"):
            assert bare.stdout.readline().strip() == said
            held.append(resident(bare.pid))
            bare.stdin.write("\n")
            bare.stdin.flush()
    with Bench(draw_feeds(ingest(path), 0), "cpu", 60.0) as bench:
        found = bench.weigh(path, STRICT)
    assert found.loaded is not None
    assert abs(found.loaded - (held[1] - held[0])) < 500_000
