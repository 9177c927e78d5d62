"""Ctrl-C at random moments of a solve, by the command, in a program and of a batch: is the best plan by then there?

A solve is timed first, without a signal. Then each moment is drawn evenly from that time, from a seed. `heard`: what
the best order adds that had been reported, whether or not it has places by then; `plan`: what the plan adds that is
there afterwards, sound by a replay of its own; `seconds`: from the signal to the end of the process. A row is wrong
where an order had been heard of and no plan is there, where the exit code is none of an interrupt or of a command that
was over, or where something torn was left behind. It is `dearer` where the plan adds more than what had been heard of.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

import remat_cli as remat
from remat_cli.zoo.build import build

KEY = ("face", "number")
FACES = ("command", "program", "batch")
BUDGET = "60%"
LOCK = ".lock"  # which a batch holds while it runs, and leaves
NEAR = 0.0005  # what the words round off, and a little more
PROGRAM = """
import signal, sys, warnings
warnings.simplefilter("ignore")
import remat_cli as remat
def heard(known):
    if known.cost is not None: print("cost", known.cost, flush=True)
plan = None
try:
    budget, seconds = sys.argv[1], float(sys.argv[2])
    plan = remat.solve("m.onnx", budget=budget, time_limit=seconds, cache=False, report=heard)
except KeyboardInterrupt as stop:
    plan = getattr(stop, "plan", None)
signal.signal(signal.SIGINT, signal.SIG_IGN)  # what comes after the call is not remat's
if plan is not None: plan.save("m.plan.json")
"""


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--moments", type=int, default=20, help="of each face")
    parser.add_argument("--seconds", type=float, default=8.0, help="of one solve")
    parser.add_argument("--faces", nargs="*", default=FACES, choices=FACES)
    parser.add_argument("--numbers", type=int, nargs="*", help="only these of the moments are measured again")
    parser.add_argument("--seed", type=int, default=0)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    draw = random.Random(asked.seed)
    for face in asked.faces:
        whole = interrupted(face, None, asked.seconds)["seconds"]
        for number in range(asked.moments):
            moment = round(draw.uniform(0, whole), 2)
            if asked.numbers is None or number in asked.numbers:
                yield {"face": face, "number": number, **interrupted(face, moment, asked.seconds)}


def conclude(known: list[dict[str, Any]]) -> None:
    wrong, dearer = [row for row in known if row["wrong"]], [row for row in known if row["dearer"]]
    heard = sum(row["heard"] is not None for row in known)
    print(f"{len(known)} moments, {heard} of them after an order was heard of", end=": ")
    print(f"{len(wrong)} wrong, {len(dearer)} dearer", *wrong, *dearer, sep="\n")


def interrupted(face: str, moment: float | None, seconds: float) -> dict[str, Any]:
    """What is left of a solve that is interrupted then."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(remat.grad(build("unet", image=64, width=8, batch=8)), folder / "m.onnx")
        manifest = {"format": "remat-batch/1", "models": ["m.onnx"], "budgets": [BUDGET]}
        manifest["defaults"] = {"time-limit": f"{seconds}s"}
        (folder / "m.yaml").write_text(json.dumps(manifest))
        limit = ("--time-limit", f"{seconds}s")
        command = {
            "command": ["-m", "remat_cli", "solve", "m.onnx", "--budget", BUDGET, *limit, "-v"],
            "program": ["-c", PROGRAM, BUDGET, str(seconds)],
            "batch": ["-m", "remat_cli", "batch", "m.yaml", "--jobs", "1"],
        }[face]
        given = {**os.environ, "REMAT_RESULTS": str(folder / "results"), "PYTHONPATH": str(Path(__file__).parents[2])}
        started: dict[str, Any] = {"cwd": folder, "env": given, "preexec_fn": _as_in_a_terminal}
        begun = time.monotonic()
        with (
            (folder / "said").open("w") as said,
            subprocess.Popen([sys.executable, *command], stdout=said, stderr=said, **started) as running,
        ):
            if moment is not None:
                time.sleep(moment)
                said_by_then = "".join(path.read_text() for path in (folder / "said", *folder.rglob("*.txt")))
                begun = time.monotonic()
                running.send_signal(signal.SIGINT)
            code = running.wait()
        took = round(time.monotonic() - begun, 2)
        plans = [remat.load_plan(path) for path in folder.rglob("*.plan.json")]
        sound = all(plan.replayed()[1].peak == plan.peak <= plan.budget for plan in plans)
        hidden = [path.name for path in folder.rglob(".*") if path.is_file()]
        torn = [name for name in hidden if name != LOCK]
        added = round(plans[0].overhead, 5) if plans else None
        found = {"moment": moment, "code": code, "seconds": took, "plan": added, "sound": sound, "torn": torn}
        if moment is None:
            return found
        heard = _heard(said_by_then, folder / "m.onnx")
        early = code == 1 and "remat_cli" not in (folder / "said").read_text()  # Python itself had not started
        over = early or code in (0, 4, 5, 130, -signal.SIGINT)
        missing = heard is not None and not plans
        dearer = heard is not None and added is not None and added > heard + NEAR
        return {**found, "heard": heard, "dearer": dearer, "wrong": bool(torn or not over or not sound or missing)}


def _as_in_a_terminal() -> None:
    """What a shell begins in the background passes over interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _heard(said: str, model: Path) -> float | None:
    """What the best order adds that had been reported, of the model's time."""
    if shares := re.findall(r"plan \+([\d.]+)%", said):
        return min(float(share) for share in shares) / 100
    if costs := re.findall(r"^cost (\d+)$", said, re.MULTILINE):
        whole = remat.solve(model, budget="100%", cache=False, work_limit=1).recorded.baseline_cost
        return round(min(map(int, costs)) / whole - 1, 5)
    return None
