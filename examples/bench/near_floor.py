"""The least peak found and proved, and what plans cost at it and a little above, graph by graph: a JSON line for each.

Usage: python examples/bench/near_floor.py [--seconds 20] [-o FILE] GRAPH.problem.json ...

`remat problem` writes such graphs, of `remat zoo` and `remat grad` with `remat profile --estimate v100`: mobilenet-v2,
resnet18, resnet50, mlp at batch 64; densenet121, vgg19, vit-b16 at 32; bert-base at 16 x 384; gpt2 at 8 x 512; unet at
8 x 256 pixels; u1 is `unet --upsample nearest --image 32 --width 8 --layers 2 --batch 1`. The others are exports of
PyTorch and onnxruntime. Peaks are shares of what the ops need in the order given. Costs are shares beyond every op
once. Each plan above the least peak has half of the seconds. `cpu` is of all three questions; what lowers the cost at
the least peak has what is left of its time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from remat_cli.formats import problemfile
from solvers.clock import Clock
from solvers.methods.auto.auto import solve
from solvers.methods.auto.least_peak import minimize_peak
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("graphs", nargs="+", type=Path)
    options.add_argument("--seconds", type=float, default=20.0)
    options.add_argument("-o", "--output", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = options.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} of other work"
    table: list[dict[str, Any]] = []
    for path in asked.graphs:
        table.append(row(path.name.split(".")[0], problemfile.read(path).problem, asked.seconds))
        print(json.dumps(table[-1]), flush=True)
        told = {"machine": machine, "seed": 0, "table": table}
        asked.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
