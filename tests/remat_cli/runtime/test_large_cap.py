"""Caps of more bytes than the runtime takes for an arena's first region."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
from pathlib import Path

from remat_cli.checking.feeds import draw_feeds
from remat_cli.ingest import ingest
from remat_cli.runtime.session import session

path = Path(sys.argv[1])
found = session(path, budget=int(sys.argv[2])).run(None, draw_feeds(ingest(path, {}), 0))
print(len(found))
"""


@pytest.mark.parametrize("budget", [(1 << 31) - 1, 1 << 31, 16_000_000_000])
def test_an_arena_is_capped_at_two_gibibytes_and_more(data: Path, budget: int) -> None:
    command = [sys.executable, "-c", RUN, str(data / "torch_mlp.onnx"), str(budget)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 0
