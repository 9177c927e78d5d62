"""Time against size, from 100 to 50,000 nodes, and what each step of a solve takes of it.

Usage: python examples/bench/scale.py [--most 50000] [--seconds 60] [--whole] [-o examples/bench/scale.json]

Three kinds of graphs: training graphs of chains, random layered graphs with edges that cross many layers, and
transformers of ever more layers. Each step runs by itself, in CPU seconds; a walk is given up
after a while. `--whole` also runs `milp` for so many seconds at three quarters of the peak: when it had its
first plan, how late it came back, and how much memory it took.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, process_time
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from transformer import deepen

from remat_cli.formats import problemfile
from solvers.clock import Clock
from solvers.methods.anyorder.bound import Search
from solvers.methods.exact.cuts import build, project, small_values
from solvers.methods.exact.relaxation import first_boundaries
from solvers.methods.exact.tables import pack
from solvers.orders.arrays import arrays_of
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor
from solvers.orders.measure import memory_of
from solvers.plan import lower
from solvers.problem import Limits, Node, Problem, Progress
from solvers.reductions.reorder import reorder
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.simulate import simulate

SIZES = (100, 300, 1000, 3000, 10_000, 20_000, 50_000)
SHARE = 0.75
WALK = 20.0  # seconds after which a walk is given up


def chain(count: int) -> Problem:
    """Layers that keep what they made, and their gradients, the last layer's first."""
    layers = count // 2
    forward = [Node(10, (k - 1,) if k else (), (k,)) for k in range(layers)]
    backward = [
        Node(20, (layers - k - 1, layers + k - 1), (layers + k,), workspace=2, backward=True) for k in range(layers)
    ]
    return Problem((*forward, *backward), (4,) * layers + (3,) * layers, (2 * layers - 1,))


def layered(count: int, seed: int = 0) -> Problem:
    """Layers of some twenty nodes; each reads two to four values, mostly of the layer before, some from far back."""
    random, width = Random(seed), 20
    nodes: list[Node] = []
    for index in range(count):
        low = max(0, index - index % width - width)
        near = range(low, index - index % width)
        reads = {
            random.choice(near) if random.random() < 0.9 else random.randrange(near.stop) for _ in range(3) if near
        }
        nodes.append(Node(random.randint(1, 100), tuple(sorted(reads)), (index,)))
    read = {value for node in nodes for value in node.reads}
    outputs = tuple(value for value in range(count) if value not in read)
    return Problem(tuple(nodes), tuple(random.randint(1, 100) for _ in nodes), outputs)


def transformer(count: int) -> Problem:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "deep.problem.json"
        path.write_text(json.dumps(deepen(max(12, round((count - 7) / 35)))))
        return problemfile.read(path).problem


KINDS: dict[str, Callable[[int], Problem]] = {"chain": chain, "layered": layered, "transformer": transformer}


def steps_of(problem: Problem) -> dict[str, Callable[[], object]]:
    """Each step of a solve, ready to run."""
    small = reduced(problem).problem
    arrays, ended = arrays_of(small), small.ended()
    memory = memory_of(arrays, np.arange(len(small.nodes), dtype=np.int64))
    budget = int(memory.max() * SHARE)
    taus = first_boundaries(memory, budget)
    free = small_values(ended, budget, 0.001)
    cuts = build(ended, budget, taus, free, 1.0)
    order = np.arange(len(small.nodes), dtype=np.int64)
    plan = lower(small, order)
    search = Search(small, budget)
    return {
        "contract": lambda: reduced(problem),
        "arrays": lambda: arrays_of(small),
        "peak bound": lambda: peak_bound(small),
        "one walk": lambda: Evictor(small, Clock(WALK)).run(budget, RULES[0]),
        "measure": lambda: memory_of(arrays, order),
        "annealing's tables": lambda: pack(arrays),
        "cuts": lambda: build(ended, budget, taus, free, 1.0),
        "project": lambda: project(cuts, order.tolist()),
        "cuts of any order": search.pose,
        "reorder": lambda: reorder(small, budget),
        "lower": lambda: lower(small, order),
        "simulate": lambda: simulate(small, plan),
    }


def timed(step: Callable[[], object]) -> float:
    begun = process_time()
    step()
    return round(process_time() - begun, 4)


def whole(problem: Problem, seconds: float) -> dict[str, Any]:
    small = reduced(problem).problem
    memory = memory_of(arrays_of(small), np.arange(len(small.nodes), dtype=np.int64))
    begun, first = monotonic(), list[float]()

    def hear(progress: Progress) -> None:
        if progress.cost is not None:
            first.append(round(monotonic() - begun, 2))

    found = METHODS["milp"].load()(small, int(memory.max() * SHARE), Limits(clock=Clock(seconds), report=hear))
    took = monotonic() - begun
    total = sum(node.cost for node in small.nodes)
    cost = None if found.order is None or found.bound is None else sum(small.nodes[node].cost for node in found.order)
    return {
        "status": found.status.value,
        "first plan": first[0] if first else None,
        "seconds": round(took, 2),
        "overhead": None if cost is None else round(cost / total - 1, 5),
        "gap": None if cost is None or not found.bound else round(cost / found.bound - 1, 5),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--most", type=int, default=SIZES[-1])
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--only", choices=KINDS, action="append")
    options.add_argument("--whole", action="store_true")
    options.add_argument("-o", "--output", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = options.parse_args()
    table: list[dict[str, Any]] = []
    for kind in asked.only or KINDS:
        for step in steps_of(KINDS[kind](SIZES[0])).values():
            step()  # compiled code is loaded
        for size in (size for size in SIZES if size <= asked.most):
            problem = KINDS[kind](size)
            row: dict[str, Any] = {"kind": kind, "nodes": len(problem.nodes)}
            row["steps"] = {name: timed(step) for name, step in steps_of(problem).items()}
            if asked.whole:
                row["milp"] = whole(problem, asked.seconds)
            row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            table.append(row)
            print(json.dumps(row), flush=True)
            machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
            told = {"machine": machine, "share": SHARE, "table": table}
            asked.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
