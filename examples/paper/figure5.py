"""Figures 4 and 5 of the Checkmate paper (arXiv 1910.02653): what each method of its Table 1 costs, by budget.

Usage: python examples/paper/figure5.py [--seconds N] [NETWORK ...]   (writes figure5.csv, figure5.png over all of it)

Networks are the zoo's, through `grad`, op by op, with the paper's batches and images, and costs estimated for a V100;
nothing is run. N is for each network: 230 on two idle cores, more where other work has its share of them. Budgets lie
evenly up to the peak without recomputation, from the least peak known (VGG-16) or a tenth more; memory is what is live.
All of a network's points come from one `sweep`.
"""

from __future__ import annotations

import csv
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from kept import HERE, asked_for, step_of

from remat_cli.actions.sweeping import Sweep, SweepQuestion
from remat_cli.model.quantities import parse_budgets
from remat_cli.plans.points import Point
from remat_cli.saying.pictures import canvas
from remat_cli.saying.pictures.curve import MARKERS
from solvers.clock import Clock
from solvers.problem import Limits

SECONDS = 230.0
NETWORKS: dict[str, dict[str, Any]] = {
    "vgg16": {"batch": 256},
    "mobilenet-v1": {"batch": 512},
    "unet": {"batch": 32, "image": (416, 608)},
}
BUDGETS = {"vgg16": "66%..100%/6", "mobilenet-v1": "27%..100%/6", "unet": "48%..100%/6"}
COMPARED = (
    *("checkpoint-all", "griewank", "chen-sqrt", "chen-greedy", "ap-sqrt", "ap-greedy"),
    *("linearized-sqrt", "linearized-greedy", "auto"),
)
COLUMNS = (
    "network",
    "method",
    "budget",
    "share",
    "status",
    "peak",
    "ratio",
    "bound",
    "gap",
    "bound of any order",
    "seconds",
    "made by",
)


def measure(name: str, seconds: float) -> list[dict[str, object]]:
    subject = replace(step_of(name, **NETWORKS[name]), graph=None)  # the bare problem: what is live, and nothing else
    spent, began = time.process_time(), time.monotonic()
    curve = Sweep(
        subject,
        SweepQuestion(budgets=parse_budgets(BUDGETS[name]), methods=COMPARED),
        Limits(Clock(seconds), gap=1e-3),
        report=lambda at: print(f"{name} {at.done}/{at.total} {at.what}", file=sys.stderr, flush=True),
    ).run()
    print(f"{name}: {time.monotonic() - began:.0f} s, {time.process_time() - spent:.0f} s of CPU", flush=True)
    return [row(name, point, curve.whole, curve.before.cost) for point in curve.points]


def row(name: str, point: Point, whole: int, cost: int) -> dict[str, object]:
    figures = (
        *(name, point.method, point.budget, round(point.budget / whole, 4), point.status.value),
        "" if point.peak is None else point.peak,
        "" if point.cost is None else round(point.cost / cost, 5),
        "" if point.bound is None else round(point.bound / cost, 5),
        "" if point.gap is None else round(point.gap, 5),
        "" if point.bound_any_order is None else round(point.bound_any_order / cost, 5),
        *(round(point.seconds, 1), point.made_by if point.found else ""),
    )
    return dict(zip(COLUMNS, figures, strict=True))


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    names = [name for name in NETWORKS if any(row["network"] == name for row in rows)]
    with canvas.drawing(path, 5 * len(names), 5) as figure:
        every = figure.subplots(1, len(names), squeeze=False)[0]
        for axes, name in zip(every, names, strict=True):
            panel(axes, name, [row for row in rows if row["network"] == name])
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=9)


def panel(axes: Any, name: str, rows: list[dict[str, Any]]) -> None:
    for place, method in enumerate(COMPARED):
        own = [row for row in rows if row["method"] == method and row["ratio"] != ""]
        budgets, ratios = [float(row["budget"]) / 1e9 for row in own], [float(row["ratio"]) for row in own]
        strong = method in ("auto", "milp")
        color = {"auto": canvas.INK, "milp": "#e15759"}.get(method, canvas.LINES[place % len(canvas.LINES)])
        axes.plot(
            *(budgets, ratios),
            label=method,
            color=color,
            marker=MARKERS[place],
            markersize=4,
            zorder=3 if strong else 2,
        )
    proved = [row for row in rows if row["method"] == "auto" and row["bound of any order"] != ""]
    places = [float(row["budget"]) / 1e9 for row in proved]
    bounds = [float(row["bound of any order"]) for row in proved]
    axes.plot(places, bounds, linestyle="--", color=canvas.INK, linewidth=1, label="proved: nothing takes less")
    axes.set_ylim(0.98, 1.6)
    axes.set_xlabel("budget (GB)")
    axes.set_ylabel("time, over that without recomputation")
    axes.grid(linewidth=0.6)
    canvas.title(axes, f"{name}, batch {NETWORKS[name]['batch']}")


def main() -> None:
    stored = HERE / "figure5.csv"
    rows: list[dict[str, Any]] = list(csv.DictReader(stored.open())) if stored.exists() else []
    networks, seconds = asked_for(NETWORKS, SECONDS)
    for name in networks:
        rows = [row for row in rows if row["network"] != name] + measure(name, seconds)
        rows.sort(key=lambda row: list(NETWORKS).index(row["network"]))
        with stored.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    draw([row for row in rows if row["method"] in COMPARED], HERE / "figure5.png")


if __name__ == "__main__":
    main()
