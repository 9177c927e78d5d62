"""A child of a process that has sessions lets go of them without waiting, and is told that it cannot run a step."""

from __future__ import annotations

import os
import platform
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
LEAVING = """
import atexit, ctypes, os, sys, remat_cli as remat
def leaves(what):
    child = os.fork()
    if not child:
        atexit.register(print, what, "said goodbye")
        ctypes.CDLL(None).printf(b"C wrote too;")
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7, what
train = remat.grad(sys.argv[1], optimizer="sgd")
plan = remat.solve(train, budget="100%", cache=False)
remat.session(plan)
leaves("after a session")
held = [remat.session(plan), remat.step(train, sys.argv[1])]
leaves("with sessions")
child = os.fork()
if not child:
    try:
        held[0].run(None, {})
    except RuntimeError as error:
        print(error)
    sys.exit()
assert not os.waitpid(child, 0)[1]
"""
ONLY_LOADED = """
import onnxruntime, os, sys, remat_cli as remat, numpy as np
for makes in (False, True):
    child = os.fork()
    if not child:
        if makes:
            remat.step(remat.grad(sys.argv[1], optimizer="sgd"), sys.argv[1])
        sys.exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
OF_THE_USER = """
import onnxruntime, os, sys, remat_cli as remat
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 4, 4
own = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
child = os.fork()
if not child:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
DROPPED_BY_THE_CHILD = """
import gc, onnxruntime, os, signal, sys, weakref, remat_cli as remat
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 4, 4
def make():
    return onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
class Cycle: pass
gc.disable()
unreachable = Cycle()
unreachable.itself, unreachable.session = unreachable, make()
del unreachable
dropped = make()
forgotten = Cycle()
proxy = weakref.proxy(forgotten)
del forgotten  # what asks the proxy for its class fails now
child = os.fork()
if not child:
    signal.alarm(500)
    del dropped
    gc.collect()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
WHILE_IMPORTING = """
import os, signal, sys, threading, remat_cli as remat
threading.Thread(target=lambda: remat.step).start()
while "remat_cli.training" not in sys.modules:
    pass
child = os.fork()
if not child:
    signal.alarm(500)
    remat.step
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def told(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(FORWARD)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@forks
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems' C cannot leave so")
def test_a_forked_child_leaves_when_it_wants_to() -> None:
    """Python's last calls are made, C's buffers written, and the exit code kept; only the runtime's end is left out."""
    *first, last = told(LEAVING)
    assert "was made before the process forked" in last
    said = "".join(first)
    assert said.count("C wrote too;") == 2
    assert said.replace("C wrote too;", "") == "after a session said goodbyewith sessions said goodbye"


@pytest.mark.slow
@forks
def test_sessions_are_let_go_in_a_forked_child() -> None:
    said = told(SCRIPT)
    assert "before the process forked" in said[0]
    assert said[1:] == ["True", "True"]


@forks
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems' C cannot leave so")
def test_a_child_leaves_where_the_runtime_was_only_loaded() -> None:
    """Its own end hangs such a child, or aborts it."""
    assert told(ONLY_LOADED) == ["7", "7"]


@forks
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems' C cannot leave so")
def test_a_child_leaves_that_holds_a_session_which_the_user_made() -> None:
    """By itself the runtime takes it apart at Python's end, for which it waits or dies."""
    assert told(OF_THE_USER) == ["7"]


@forks
def test_a_child_may_drop_a_session_which_the_user_made() -> None:
    """By itself the runtime takes it apart, at once or when Python next collects cycles, and waits for ever."""
    assert told(DROPPED_BY_THE_CHILD) == ["7"]


@pytest.mark.slow
@forks
def test_no_child_is_made_while_a_thread_imports_a_part_of_remat() -> None:
    """The child would wait for an import that no thread of its own will end."""
    assert told(WHILE_IMPORTING) == ["7"]
