"""A program ends as it means to while its daemon threads are in a loop, or in a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORWARD = ROOT / "tests" / "data" / "torch" / "language_train_whole.onnx"
SCRIPT = """
import sys, threading, numpy as np, remat_cli as remat
step = remat.step(remat.grad(sys.argv[1], optimizer="sgd"), sys.argv[1])
ids, begun = np.zeros((2, 6), int), threading.Event()
def train():
    while True:
        step((ids, ids))
        begun.set()
def order():
    from solvers import _loops
    while True:
        _loops.drawn(0, 200_000, 7)
        begun.set()
for number in range(2):
    threading.Thread(target=globals()[sys.argv[2]], daemon=True).start()
begun.wait()
sys.exit(7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads are not ended by unwinding")
@pytest.mark.parametrize("work", ["train", "order"])
def test_a_program_ends_beside_its_daemon_threads(work: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(FORWARD), work],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 7, done.stderr
