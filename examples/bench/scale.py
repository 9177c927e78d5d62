"""Time against size, from 100 to 50,000 nodes, and what each step of a solve takes of it.

Three kinds of graphs: training graphs of chains, random layered graphs with edges that cross many layers, and
transformers of ever more layers. Each step runs by itself, in CPU seconds; then `auto` runs for so many
seconds: CPU seconds to its first plan and to its end, which is a proof or the limit. Budgets are shares of the peak
without recomputation, the seed is 0. `results/scale.png` is drawn at the end.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from transformer import deepen

from remat_cli.formats import problemfile
from solvers.annealing.reordering import reorder
from solvers.clock import Clock
from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.exact.cuts import build_cuts, select_small_values, windows_in_order
from solvers.methods.exact.projection import project
from solvers.methods.exact.relaxation import first_boundaries
from solvers.orders.arrays import arrays_of
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor
from solvers.orders.measure import memory_of
from solvers.plan import lower
from solvers.problem import Limits, Node, Problem, Progress
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.simulate import simulate

SIZES = (100, 300, 1000, 3000, 10_000, 20_000, 50_000)
SHARES = {"chain": 0.75, "layered": 0.9, "transformer": 0.5}
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


def budget_of(problem: Problem, share: float) -> int:
    return int(memory_of(arrays_of(problem), np.arange(len(problem.nodes), dtype=np.int64)).max() * share)


def steps_of(small: Problem, budget: int) -> dict[str, Callable[[], object]]:
    """Each step of a solve, ready to run."""
    arrays, ended = arrays_of(small), small.ended()
    memory = memory_of(arrays, np.arange(len(small.nodes), dtype=np.int64))
    windows = windows_in_order(ended, first_boundaries(memory, budget))
    free = select_small_values(ended, budget)
    cuts = build_cuts(ended, budget, windows, free, 1.0)
    order = np.arange(len(small.nodes), dtype=np.int64)
    plan = lower(small, order)
    search = BoundSearch(small, budget)
    return {
        "contract": lambda: reduced(small),
        "arrays": lambda: arrays_of(small),
        "peak bound": lambda: peak_bound(small),
        "one walk": lambda: Evictor(small).run(budget, RULES[0], clock=Clock(WALK)),
        "measure": lambda: memory_of(arrays, order),
        "cuts": lambda: build_cuts(ended, budget, windows, free, 1.0),
        "project": lambda: project(cuts, order.tolist()),
        "cuts of any order": lambda: search._pose_at(search.windows, ()),
        "reorder": lambda: reorder(small, budget),
        "lower": lambda: lower(small, order),
        "simulate": lambda: simulate(small, plan),
    }


def timed(step: Callable[[], object]) -> float:
    begun = process_time()
    step()
    return round(process_time() - begun, 4)


def whole(problem: Problem, budget: int, seconds: float) -> dict[str, Any]:
    first = list[float]()
    begun = process_time()

    def hear(progress: Progress) -> None:
        if progress.cost is not None:
            first.append(round(process_time() - begun, 2))

    found = METHODS["auto"].load()(problem, budget, Limits(clock=Clock(seconds), report=hear))
    total = sum(node.cost for node in problem.nodes)
    cost = None if found.order is None else sum(problem.nodes[node].cost for node in found.order)
    planned = found.status.found and cost is not None
    return {
        "status": found.status.value,
        "first plan": first[0] if first else None,
        "cpu": round(process_time() - begun, 2),
        "overhead": round(cost / total - 1, 5) if planned else None,
        "gap": round(cost / found.bound_any_order - 1, 5) if planned and found.bound_any_order else None,
    }


def draw(table: list[dict[str, Any]], picture: Path) -> None:
    """Left: to the first plan and to the end, against size. Right: each step's share at each kind's largest."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    colours = dict(zip(SHARES, ("tab:blue", "tab:orange", "tab:green"), strict=True))
    for kind, colour in colours.items():
        rows = [row for row in table if row["kind"] == kind]
        for what, line in (("first plan", "--"), ("cpu", "-")):
            known = [(row["nodes"], row["auto"][what]) for row in rows if row["auto"][what]]
            label = f"{kind} at {SHARES[kind]:.0%}, {what.replace('cpu', 'end')}"
            left.plot(*zip(*known, strict=True), line, marker="o", ms=4, color=colour, label=label)
        for row in rows:
            proved = row["auto"]["status"] == "optimal"
            left.plot(row["nodes"], row["auto"]["cpu"], "o", ms=9, mfc=colour if proved else "white", mec=colour)
    left.set(
        xscale="log", yscale="log", xlabel="ops", ylabel="CPU seconds", title="auto: first plan, end (filled: proved)"
    )
    left.grid(alpha=0.3)
    left.legend(fontsize=8)
    names = sorted({name for row in table for name in row["steps"]})
    palette = pyplot.get_cmap("tab20").colors
    largest = [max((row for row in table if row["kind"] == kind), key=lambda row: row["nodes"]) for kind in SHARES]
    for place, row in enumerate(largest):
        bottom, total = 0.0, sum(row["steps"].values())
        for index, name in enumerate(names):
            share = row["steps"].get(name, 0) / total
            label = name if place == 0 else None
            right.bar(
                f"{row['kind']}\n{row['nodes']:,} ops, {total:.1f} s",
                share,
                bottom=bottom,
                color=palette[index],
                label=label,
            )
            bottom += share
    right.set(title="each step by itself, share of their CPU seconds", ylim=(0, 1))
    right.legend(bbox_to_anchor=(1.01, 1), loc="upper left", fontsize=8)
    figure.savefig(picture, dpi=110)


KEY = ("kind", "nodes")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--only", choices=KINDS, action="append")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for kind in asked.only or KINDS:
        first = reduced(KINDS[kind](SIZES[0])).problem
        for step in steps_of(first, budget_of(first, SHARES[kind])).values():
            step()  # compiled code is loaded
        whole(first, budget_of(first, SHARES[kind]), 20.0)
        before = 0
        for size in (size for size in SIZES if size <= asked.most):
            problem = KINDS[kind](size)
            if len(problem.nodes) == before:
                continue  # the smallest transformer is larger than that
            before = len(problem.nodes)
            small = reduced(problem).problem
            budget = budget_of(small, SHARES[kind])
            row: dict[str, Any] = {"kind": kind, "nodes": before, "share": SHARES[kind]}
            row["steps"] = {name: timed(step) for name, step in steps_of(small, budget).items()}
            row["auto"] = whole(small, budget, asked.seconds)
            yield row | {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def conclude(known: list[dict[str, Any]]) -> None:
    draw(known, Path(__file__).parent / "results" / "scale.png")
