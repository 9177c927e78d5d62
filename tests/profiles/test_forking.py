"""A child of a process that has sessions lets go of them without waiting, and is told that it cannot run a step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORWARD = ROOT / "tests" / "data" / "torch" / "language_train_whole.onnx"
SCRIPT = """
import os, sys, numpy as np, remat_cli as remat
ids = np.zeros((2, 6), int)
train = remat.grad(sys.argv[1], optimizer="sgd")
step = remat.step(train, sys.argv[1])
held = [step, remat.session(remat.solve(train, budget="100%", cache=False))]
step((ids, ids))
child = os.fork()
if not child:
    try:
        step((ids, ids))
    except remat.Usage as error:
        print(error)
    held.clear()
    del step
    print(np.isfinite(remat.step(train, sys.argv[1])((ids, ids))), flush=True)
    os._exit(7)  # as multiprocessing ends its children
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(np.isfinite(step((ids, ids))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_sessions_are_let_go_in_a_forked_child() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(FORWARD)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert "before the process forked" in said[0]
    assert said[1:] == ["True", "True"]
