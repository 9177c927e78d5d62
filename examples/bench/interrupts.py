"""Ctrl-C at random moments of a solve, by the command, in a program and of a batch: is the best plan by then there?

A solve is timed first, without a signal. Then each moment is drawn evenly from that time, from a seed. `heard`: whether
a plan had been reported that fits; `plan`: whether there is one afterwards, sound by a replay of its own; `seconds`:
from the signal to the end of the process. A row is wrong where a plan had been heard of and none is there, where the
exit code is none of an interrupt or of a command that was over, or where something torn was left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
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
BUDGET = "70%"
PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import remat_cli as remat
def heard(known):
    if known.cost is not None: print("heard", flush=True)
plan = None
try:
    budget, seconds = sys.argv[1], float(sys.argv[2])
    plan = remat.solve("m.onnx", budget=budget, time_limit=seconds, cache=False, report=heard)
except KeyboardInterrupt as stop:
    plan = getattr(stop, "plan", None)
if plan is not None: plan.save("m.plan.json")
"""


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--moments", type=int, default=20, help="of each face")
    parser.add_argument("--seconds", type=float, default=8.0, help="of one solve")
    parser.add_argument("--seed", type=int, default=0)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    draw = random.Random(asked.seed)
    for face in ("command", "program", "batch"):
        whole = interrupted(face, None, asked.seconds)["seconds"]
        for number in range(asked.moments):
            moment = round(draw.uniform(0, whole), 2)
            yield {"face": face, "number": number, **interrupted(face, moment, asked.seconds)}


def conclude(known: list[dict[str, Any]]) -> None:
    wrong = [row for row in known if row["wrong"]]
    print(f"{len(known)} moments, {len(wrong)} wrong", *wrong, sep="\n")


def interrupted(face: str, moment: float | None, seconds: float) -> dict[str, Any]:
    """What is left of a solve that is interrupted then."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(remat.grad(build("unet", image=64, width=16, batch=2)), folder / "m.onnx")
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
        begun = time.monotonic()
        with (
            (folder / "said").open("w") as said,
            subprocess.Popen([sys.executable, *command], cwd=folder, env=given, stdout=said, stderr=said) as running,
        ):
            if moment is not None:
                time.sleep(moment)
                heard = _has_heard(folder)
                begun = time.monotonic()
                running.send_signal(signal.SIGINT)
            code = running.wait()
        took = round(time.monotonic() - begun, 2)
        plans = list(folder.rglob("*.plan.json"))
        sound = [_is_sound(path) for path in plans]
        torn = [path.name for path in folder.rglob("*") if path.name.startswith(".") and path.is_file()]
        found = {
            "moment": moment,
            "code": code,
            "seconds": took,
            "plan": bool(plans),
            "sound": all(sound),
            "torn": torn,
        }
        if moment is None:
            return found
        over = code in (0, 4, 5, 130, -signal.SIGINT)
        missing = heard and not plans and face != "batch"  # a batch goes on with a job that was cut short
        return {**found, "heard": heard, "wrong": bool(torn or not over or not all(sound) or missing)}


def _has_heard(folder: Path) -> bool:
    text = (folder / "said").read_text()
    return "heard" in text or "plan +" in text


def _is_sound(path: Path) -> bool:
    plan = remat.load_plan(path)
    return plan.peak <= plan.budget
