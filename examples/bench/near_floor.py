"""The least peak proved and found, graph by graph: a JSON line for each.

Usage: python examples/bench/near_floor.py [--seconds 60] [-o FILE] GRAPH.problem.json ...

`remat problem` writes such graphs. u1 is `remat zoo unet --upsample nearest --image 32 --width 8 --layers 2 --batch 1`
through `remat grad`; the others are of tests/data. Peaks are shares of what the ops need in the order given; costs are
shares beyond every op once. `cpu` is of the whole search, with what makes the schedule of least peak cheaper.
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
from solvers.methods.auto.least_peak import minimize_peak
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Problem
from solvers.schedule import baseline, schedule


def row(name: str, problem: Problem, seconds: float) -> dict[str, Any]:
    _, plain = baseline(problem)
    begun = process_time()
    found = schedule(problem, 1 << 60, minimize_peak, Limits(Clock(seconds)))
    assert found.outcome is not None
    assert found.result.peak_bound is not None
    return {
        "graph": name,
        "ops": len(problem.nodes),
        "least": round(found.outcome.peak / plain.peak, 4),
        "bound": round(found.result.peak_bound / plain.peak, 4),
        "bound_op_by_op": round(peak_bound(problem).peak / plain.peak, 4),
        "gap": round(found.outcome.peak / found.result.peak_bound - 1, 4),
        "cost": round(found.outcome.cost / max(plain.cost, 1) - 1, 3),
        "cpu": round(process_time() - begun, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("graphs", nargs="+", type=Path)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("-o", "--output", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = options.parse_args()
    table: list[dict[str, Any]] = []
    for path in asked.graphs:
        table.append(row(path.name.split(".")[0], problemfile.read(path).problem, asked.seconds))
        print(json.dumps(table[-1]), flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} of other work"
    told = {"machine": machine, "seed": 0, "seconds": asked.seconds, "table": table}
    asked.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
