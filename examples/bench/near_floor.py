"""The least peak found and proved, and what plans cost at it and a little above, graph by graph.

`remat problem` writes such graphs, of `remat zoo` and `remat grad` with `remat profile --estimate v100`: mobilenet-v2,
resnet18, resnet50, mlp at batch 64; densenet121, vgg19, vit-b16 at 32; bert-base at 16 x 384; gpt2 at 8 x 512; unet at
8 x 256 pixels; u1 is `unet --upsample nearest --image 32 --width 8 --layers 2 --batch 1`. The others are exports of
PyTorch and onnxruntime. Peaks are shares of what the ops need in the order given. Costs are shares beyond every op
once. Each plan above the least peak has half of the seconds; what lowers the cost at the least peak has what is left of
its time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

from remat_cli.formats import problemfile
from solvers.clock import Clock
from solvers.methods.auto.auto import solve
from solvers.methods.auto.minimize_peak import minimize_peak
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Problem
from solvers.schedule import baseline, schedule

ABOVE = (5, 10)  # percent


def row(name: str, problem: Problem, seconds: float) -> dict[str, Any]:
    _, plain = baseline(problem)
    begun = process_time()
    least = schedule(problem, 1 << 60, minimize_peak, Limits(Clock(seconds)))
    assert least.outcome is not None
    assert least.result.peak_bound is not None
    found = {
        "graph": name,
        "ops": len(problem.nodes),
        "least": round(least.outcome.peak / plain.peak, 4),
        "bound": round(least.result.peak_bound / plain.peak, 4),
        "bound_op_by_op": round(peak_bound(problem).peak / plain.peak, 4),
        "gap": round(least.outcome.peak / least.result.peak_bound - 1, 4),
        "cost": round(least.outcome.cost / max(plain.cost, 1) - 1, 3),
    }
    for percent in ABOVE:
        found |= plan_above(problem, least.outcome.peak * (100 + percent) // 100, percent, seconds / 2)
    return found | {"cpu": round(process_time() - begun, 1), "seconds": seconds}


def plan_above(problem: Problem, budget: int, percent: int, seconds: float) -> dict[str, float | None]:
    """What the cheapest plan found there costs beyond every op once, and how far that can be from the optimum."""
    once = sum(node.cost for node in problem.nodes)
    found = schedule(problem, budget, solve, Limits(Clock(seconds)))
    if found.outcome is None or not found.result.status.found:
        return {f"cost_{percent}": None, f"gap_{percent}": None}
    bound = found.result.bound_any_order or once
    cost = found.outcome.cost
    return {f"cost_{percent}": round(cost / max(once, 1) - 1, 4), f"gap_{percent}": round(cost / max(bound, 1) - 1, 4)}


KEY = ("graph",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("graphs", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for path in asked.graphs:
        yield row(path.name.removesuffix(".problem.json"), problemfile.read(path).problem, asked.seconds)
