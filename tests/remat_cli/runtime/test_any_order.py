"""Nothing that is done to sessions, in whatever order, ends the process: each test is one of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from remat_cli.runtime.placed import library

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(
    library() is None and shutil.which("cc") is None, reason="no compiler, and so no allocator"
)
AFTER_A_FAILURE = """
import gc, onnxruntime
from pathlib import Path
from tests.remat_cli.runtime.odd_orders import made, step
try:
    made("planned", "bfloat16", 1)
except Exception:
    gc.collect()
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.use_env_allocators", "1")
onnxruntime.InferenceSession(step("float32").SerializeToString(), options, providers=["CPUExecutionProvider"])
"""


def _ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "REMAT_RESULTS": "off"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )


def test_a_session_that_failed_leaves_the_allocator_where_it_was() -> None:
    """The runtime's environment lists the allocator for good, so its library must not go with the session."""
    done = _ran("-c", AFTER_A_FAILURE)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_orders_end_well(seed: int) -> None:
    done = _ran("-m", "tests.remat_cli.runtime.odd_orders", str(seed), "34")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
