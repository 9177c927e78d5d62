"""What was compiled is used again, but not once something that it was compiled with has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ASK = """from solvers.clock import STANDSTILL
from pack.loop import answer, entry
print(answer(), sum(answer.stats.cache_hits.values()), STANDSTILL.seconds() > 0)
"""
LOOP = """from pack.table import SIZE
from solvers.orders.compiled import entry

@entry
def answer() -> int:
    return 2 * SIZE
"""


def _asked(folder: Path) -> list[str]:
    paths = os.pathsep.join([str(folder), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", ASK], env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_another_constant_in_another_module_is_seen(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "__init__.py").write_text("")
    (pack / "table.py").write_text("SIZE = 4\n")
    (pack / "loop.py").write_text(LOOP)
    assert _asked(tmp_path) == ["8", "0", "True"]
    assert _asked(tmp_path) == ["8", "1", "False"]
    (pack / "table.py").write_text("SIZE = 50\n")
    assert _asked(tmp_path) == ["100", "0", "True"]
