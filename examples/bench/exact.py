"""How soon `milp` finds a plan, comes within 1% and proves its gap.

The instances are the tests' networks and a 48-layer transformer; with `--zoo` also the training graphs of ResNet-50 and
DenseNet-121 op by op. Budgets are shares of the peak without recomputation; the smallest of a network, most of them
10% above the least feasible one, has twice the time. `--paper` solves each with `milp-paper` as well, for up to five
minutes. Seconds count from the call of the method, compiled code being loaded beforehand; the seed is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from transformer import deepen

from remat_cli.formats import problemfile
from remat_cli.notes.words import sentences
from solvers.clock import Clock
from solvers.problem import Limits, Problem, Progress, Result
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import evaluate

ROOT = Path(__file__).parents[2]
BUDGETS: dict[str, tuple[float, ...]] = {
    "vgg16": (0.9143, 0.85),
    "vgg19": (0.8482,),
    "mobilenet_fused": (0.7, 0.5151, 0.5),
    "unet": (0.7, 0.5, 0.4767),
    "segnet": (0.7, 0.5, 0.3865),
    "mobilenet": (0.7, 0.52, 0.2601),
    "resnet50_fused": (0.7, 0.5, 0.3529),
    "gpt2": (0.7, 0.5, 0.2785),
    "gpt2_48l": (0.5, 0.25),
}
ZOO: dict[str, tuple[float, ...]] = {"resnet50": (0.75, 0.5), "densenet121": (0.5,)}
PAPER_SECONDS = 300.0


def instances(zoo: bool, folder: Path) -> Iterator[tuple[str, Problem, tuple[float, ...]]]:
    for name, shares in BUDGETS.items():
        path = ROOT / "tests" / "data" / "networks" / f"{name}.problem.json"
        if name == "gpt2_48l":
            path = folder / path.name
            path.write_text(json.dumps(deepen(48)))
        yield name, problemfile.read(path).problem, shares
    for name, shares in ZOO.items() if zoo else ():
        for words in (["zoo", name, "-o", f"{name}.onnx"], ["grad", f"{name}.onnx"], ["problem", f"{name}.train.onnx"]):
            command = [sys.executable, "-m", "remat_cli.main", *words]
            subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
        yield name, problemfile.read(folder / f"{name}.train.problem.json").problem, shares


def run(problem: Problem, method: str, budget: int, limits: Limits) -> dict[str, Any]:
    begun = monotonic()
    heard: list[tuple[float, Progress]] = []
    smaller = reduced(problem)
    ask = replace(limits, report=lambda progress: heard.append((monotonic() - begun, progress)))
    result: Result = METHODS[method].load()(smaller.problem, budget, ask)
    seconds = monotonic() - begun
    fits = result.status.found
    assert not fits or result.order is not None
    outcome = evaluate(problem, smaller.expand(result.order))[1] if fits and result.order is not None else None
    gap = None if outcome is None or not result.bound else outcome.cost / (result.bound + smaller.fixed_cost) - 1
    return {
        "method": method,
        "status": result.status.value,
        "seconds": round(seconds, 2),
        "first": next((round(at, 2) for at, progress in heard if progress.cost is not None), None),
        "within_1%": first_within(heard, 0.01),
        "cost": outcome and outcome.cost,
        "gap": gap if gap is None else round(gap, 6),
        "notes": sentences(result.notes[1:]),
    }


def first_within(heard: list[tuple[float, Progress]], gap: float) -> float | None:
    for at, progress in heard:
        if progress.cost is not None and progress.bound and progress.cost <= progress.bound * (1 + gap):
            return round(at, 2)
    return None


KEY = ("instance", "budget", "method")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--zoo", action="store_true")
    parser.add_argument("--only", action="append")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    warm = problemfile.read(ROOT / "tests" / "data" / "networks" / "unet.problem.json").problem
    run(warm, "milp", 450_000_000, Limits(Clock(1.0)))
    with tempfile.TemporaryDirectory() as folder:
        for name, problem, shares in instances(asked.zoo, Path(folder)):
            if asked.only and name not in asked.only:
                continue
            plain = evaluate(problem, range(len(problem.nodes)))[1]
            for share in shares:
                seconds = asked.seconds * 2 if share == shares[-1] else asked.seconds
                tries = [("milp", seconds), *([("milp-paper", PAPER_SECONDS)] if asked.paper else [])]
                for method, limit in tries:
                    found = run(problem, method, int(plain.peak * share), Limits(Clock(limit)))
                    ratio = found["cost"] and round(found["cost"] / plain.cost, 5)
                    yield {"instance": name, "nodes": len(problem.nodes), "budget": share, "ratio": ratio, **found}
