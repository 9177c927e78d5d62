"""Ctrl-C in a program that calls remat: the best plan so far comes with the exception, and the program goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx

from remat_cli.zoo.build import build

PROGRAM = """
import json, os, signal, sys
import remat_cli as remat

def heard(progress):
    if progress.cost is not None and not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))

sent = []
said = {}
for name, budget in (("found", "50%"), ("none", 1)):
    try:
        if name == "none":
            sent = []
            heard = lambda progress: sent or sent.append(os.kill(os.getpid(), signal.SIGINT))
        remat.solve(sys.argv[1], budget=budget, gap=0, time_limit=3600, cache=False, report=heard)
    except KeyboardInterrupt as stop:
        said[name] = [type(stop).__name__, stop.plan and [stop.plan.peak, stop.plan.budget]]
    except remat.RematError as error:
        said[name] = [type(error).__name__, None]
said["handler"] = signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(json.dumps(said))
"""


def test_the_best_plan_comes_with_it(data: Path) -> None:
    model = data / "networks" / "unet.problem.json"
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(model)], capture_output=True, text=True, env=os.environ, timeout=900
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    name, (peak, budget) = said["found"]
    assert (name, peak <= budget) == ("Interrupted", True)
    assert said["none"] == ["Infeasible", None]  # proved before anybody could ask
    assert said["handler"]


SECOND = """
import os, signal, sys
from remat_cli.actions.interrupts import stoppable
from remat_cli.errors import Interrupted

try:
    with stoppable() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
        assert interrupts()
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
        assert False, "the second is waited for too"
except KeyboardInterrupt as stop:
    assert isinstance(stop, Interrupted) and stop.plan is None
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
heard = []
with stoppable() as interrupts:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000): pass
    assert heard == [1] and not interrupts(), "a program's own handler is let be"
"""


def test_the_second_is_not_waited_for_and_own_handlers_stay() -> None:
    ran = subprocess.run([sys.executable, "-c", SECOND], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr


IN_PIECES = """
import json, os, signal, sys
import remat_cli as remat
from remat_cli.actions import piece_choice

planned, sent = piece_choice._planned, []

def interrupted_after_the_first(*given):
    found = planned(*given)
    if found.found and not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
        for _ in range(1000): pass
    return found

piece_choice._planned = interrupted_after_the_first
try:
    remat.solve(sys.argv[1], budget="95%", pieces="auto", work_limit=300_000, cache=False)
except remat.Interrupted as stop:
    print(json.dumps([len(sent), stop.plan and stop.plan.peak <= stop.plan.budget]))
"""


def test_it_comes_while_pieces_are_searched_too(tmp_path: Path) -> None:
    model = tmp_path / "unet.onnx"
    onnx.save(build("unet", training=False, image=96, width=8, batch=1), model)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", IN_PIECES, str(model)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [1, True]


IMPORTING = """
import os, signal, sys
import remat_cli as remat

def pressed(event, given):
    if event == "import" and given[0] == sys.argv[1] and not sent:
        sent.append(given)
        os.kill(os.getpid(), signal.SIGINT)

sent = []
sys.addaudithook(pressed)
try:
    remat.solve
except KeyboardInterrupt as stop:
    assert not isinstance(stop, remat.RematError) and sent
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    remat.solve, remat.session  # what was imported is whole
    sys.exit(0)
sys.exit(9)
"""


def test_it_breaks_no_import_off() -> None:
    """numpy's own compiled module asks for `_datetime`, and says that it cannot be imported where that raises."""
    ran = subprocess.run([sys.executable, "-c", IMPORTING, "_datetime"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
