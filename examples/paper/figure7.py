"""Figure 7 of the Checkmate paper (arXiv 1910.02653): two-phase rounding of the linear program, sample by sample.

Usage: python examples/paper/figure7.py   (writes figure7.csv and figure7.png here; nothing is run)

Networks by layers, costs in FLOPs. The paper's program is relaxed within 90% of a budget not far above the least peak
that is proved and the peak without recomputation; its S is rounded at 0.5, and at random so many times. Each schedule
is drawn by what it needs and takes, beside the optimum at that budget.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from layers import NETWORKS

from remat_cli.saying.pictures import canvas
from solvers.clock import Clock
from solvers.methods.baselines.lp_rounding import THRESHOLD
from solvers.methods.baselines.relaxation import relax_paper
from solvers.orders.best import Best
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Problem
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule

HERE = Path(__file__).parent
DRAWN = ("VGG-16", "VGG-19", "SegNet")
SAMPLES, ALLOWANCE, SECONDS = 200, 0.1, 90.0
SHARE = 0.3  # of the way from the least peak to that without recomputation
COLUMNS = ("network", "budget", "kind", "memory", "time")
KINDS = {"randomized": "#f28e2b", "deterministic": "#e15759", "optimum": canvas.INK}


def limits() -> Limits:
    return Limits(Clock(SECONDS), gap=1e-4, seed=0)


def measure(name: str) -> list[tuple[str, float, str, float, float]]:
    """Memory over the peak, and time over that, without recomputation."""
    problem = NETWORKS[name]().problem()
    full, least = baseline(problem)[1], peak_bound(problem).peak
    budget = least + int(SHARE * (full.peak - least))
    best = schedule(problem, budget, METHODS["milp"].load(), limits()).outcome
    assert best is not None
    found = [("optimum", best.peak, best.cost), *samples(problem, budget)]
    return [
        (name, round(budget / full.peak, 4), k, round(p / full.peak, 4), round(c / full.cost, 4)) for k, p, c in found
    ]


def samples(problem: Problem, budget: int) -> list[tuple[str, int, int]]:
    relaxed = relax_paper(problem, int(budget * (1 - ALLOWANCE)), limits())
    if relaxed is None:
        return []
    random = np.random.default_rng(0)
    rounded = [("deterministic", relaxed.fractions > THRESHOLD)]
    rounded += [("randomized", random.random(len(relaxed.fractions)) < relaxed.fractions) for _ in range(SAMPLES)]
    best = Best(problem, budget, limits())
    weighed = [(kind, best.weigh(relaxed.order_of(whole))) for kind, whole in rounded]
    return [(kind, one.peak, one.cost) for kind, one in weighed if one is not None]


def draw(rows: list[tuple[str, float, str, float, float]], path: Path) -> None:
    names = list(dict.fromkeys(row[0] for row in rows))
    with canvas.drawing(path, 5 * len(names), 4.5) as figure:
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            panel(axes, name, [row for row in rows if row[0] == name])


def panel(axes: Any, name: str, rows: list[tuple[str, float, str, float, float]]) -> None:
    for kind, color in KINDS.items():
        own = [row for row in rows if row[2] == kind]
        size = 12 if kind == "randomized" else 60
        axes.scatter([row[3] for row in own], [row[4] for row in own], s=size, color=color, label=kind)
    axes.axvline(rows[0][1], linestyle="--", color=canvas.QUIET, linewidth=1, label="budget")
    axes.set_xlabel("memory, over that without recomputation")
    axes.set_ylabel("time, over that without recomputation")
    axes.grid(linewidth=0.6)
    axes.legend(fontsize=9)
    canvas.title(axes, name)


def main() -> None:
    rows = [row for name in DRAWN for row in measure(name)]
    with (HERE / "figure7.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    draw(rows, HERE / "figure7.png")
    for name in DRAWN:
        own = [row for row in rows if row[0] == name]
        fitting = sum(row[3] <= row[1] for row in own if row[2] == "randomized")
        print(name, own[:2], f"{fitting} of {len(own) - 2} random ones fit")


if __name__ == "__main__":
    main()
