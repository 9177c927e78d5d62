"""`auto` beside `milp` in the given order and in another one, each with the same time.

The instances are the tests' networks and random layered graphs drawn here, which stand in for the published ones (G1
to G4 of MOCCASIN, 100 to 1,000 nodes): as many nodes and edges, by the recipe of Gagrani et al. (NeurIPS 2022,
appendix A), but not the same graphs, so that no row here can be laid beside a published one. Budgets are shares of the
peak without recomputation; costs, and bounds, percentages beyond every op once. Times are of the method alone,
compiled code being loaded beforehand.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import monotonic, process_time
from typing import Any

from remat_cli.formats import problemfile
from solvers.annealing.reordering import reorder
from solvers.clock import Clock
from solvers.problem import Limits, Node, Problem
from solvers.reductions.contraction import Contraction, after
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule

ROOT = Path(__file__).parents[2]
_OUT_OF_REACH = ("lp-rounding", "milp-paper")
LAYERED = {100: 236, 250: 944, 500: 2461, 1000: 5857}  # nodes: edges
NETWORKS = {
    "unet": (0.7, 0.5),
    "segnet": (0.8, 0.5),
    "mobilenet": (0.7, 0.52),
    "gpt2": (0.5,),
    "resnet50_fused": (0.5,),
}


def layered(count: int, edges: int, seed: int) -> Problem:
    """Layers of random widths, each op reading some of the layer before and some further back."""
    rng = random.Random(seed)
    wide = max(2, int(0.7 * count**0.5))
    layers: list[list[int]] = [[0]]
    while layers[-1][-1] < count - 2:
        first = layers[-1][-1] + 1
        layers.append(list(range(first, min(count - 1, first + rng.randint(max(1, wide // 4), int(1.75 * wide))))))
    layers.append([count - 1])
    reads: list[set[int]] = [set() for _ in range(count)]
    for above, below in pairwise(layers):
        for node in below:
            reads[node].add(rng.choice(above))
        for node in set(above).difference(*(reads[reader] for reader in below)):
            reads[rng.choice(below)].add(node)
    place = {node: index for index, layer in enumerate(layers) for node in layer}
    while sum(map(len, reads)) < edges:
        node = rng.randrange(count - 1)
        back = 0 if rng.random() < 0.6 else int(rng.expovariate(0.14))
        reads[rng.choice(layers[min(len(layers) - 1, place[node] + 1 + back)])].add(node)
    order = _shuffled(reads, rng)
    at = {node: step for step, node in enumerate(order)}
    nodes = tuple(Node(rng.randint(0, 1000), tuple(sorted(at[r] for r in reads[n])), (at[n],)) for n in order)
    spans = ((5, 100), (50, 250), (200, 620))
    return Problem(nodes, tuple(10 * rng.randint(*rng.choice(spans)) for _ in order), (count - 1,))


def _shuffled(reads: list[set[int]], rng: random.Random) -> list[int]:
    """An order in which they can run, the last node last."""
    waiting, order = list(range(len(reads))), list[int]()
    while waiting:
        ready = [node for node in waiting if reads[node].issubset(order)]
        order.append(ready[min(len(ready) - 1, int(rng.expovariate(0.5)))])
        waiting.remove(order[-1])
    return order


def instances() -> Iterator[tuple[str, Problem, tuple[float, ...]]]:
    for count, edges in LAYERED.items():
        yield f"layered{count}", layered(count, edges, 1), (0.9, 0.8, 0.7)
    for name, shares in NETWORKS.items():
        yield name, problemfile.read(ROOT / "tests" / "data" / "networks" / f"{name}.problem.json").problem, shares


def _reduced(budget: int, reordered: bool, problem: Problem) -> Contraction:
    smaller = reduced(problem)
    return after(smaller, lambda rest: reorder(rest, budget)) if reordered else smaller


def run(problem: Problem, method: str, budget: int, limits: Limits) -> dict[str, Any]:
    """`milp-reordered`: `milp` on the problem with its ops in another order."""
    plain = baseline(problem)[1].cost
    wall, cpu = monotonic(), process_time()
    solver = METHODS[method.removesuffix("-reordered")].load()
    found = schedule(problem, budget, solver, limits, partial(_reduced, budget, method.endswith("-reordered")))
    result = found.result

    def share(cost: float | None) -> float | None:
        return None if cost is None else round(100 * (cost / max(plain, 1) - 1), 3)

    return {
        "method": method,
        "status": result.status.value,
        "cost": share(found.outcome.cost) if result.status.found and found.outcome else None,
        "bound": share(result.bound),
        "bound_any_order": share(result.bound_any_order),
        "seconds": round(monotonic() - wall, 1),
        "cpu": round(process_time() - cpu, 1),
    }


KEY = ("instance", "budget", "method")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", action="append")
    parser.add_argument("--methods", default="auto,milp,milp-reordered", help="or all that take a budget")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    budgeted = [name for name, method in METHODS.items() if method.needs_budget and name not in _OUT_OF_REACH]
    methods = [*budgeted, "milp-reordered"] if asked.methods == "all" else asked.methods.split(",")
    for method in ("auto", "milp", "milp-reordered"):  # compiled code is loaded
        run(layered(60, 120, 0), method, 1, Limits(Clock(1.0)))
        run(layered(60, 120, 0), method, baseline(layered(60, 120, 0))[1].peak * 9 // 10, Limits(Clock(3.0)))
    for name, problem, shares in instances():
        for share in shares if not asked.only or name in asked.only else ():
            for method in methods:
                found = run(problem, method, int(baseline(problem)[1].peak * share), Limits(Clock(asked.seconds)))
                yield {"instance": name, "nodes": len(problem.nodes), "budget": share, **found}


def conclude(known: list[dict[str, Any]]) -> None:
    """The rows of other methods that are cheaper than `auto`'s by more than a tenth of a per cent."""
    own = {(row["instance"], row["budget"]): row["cost"] for row in known if row["method"] == "auto"}
    for row in known:
        ours, cost = own.get((row["instance"], row["budget"])), row["cost"]
        if cost is not None and (ours is None or 100 + cost < (100 + ours) / 1.001):
            print("dearer than", row["method"], row["instance"], row["budget"], cost, "for", ours)
