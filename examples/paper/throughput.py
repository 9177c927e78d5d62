"""Rotor's figures (Beaumont et al., arXiv 1911.13214): throughput by memory, of its optimal sequences and others'.

Usage: python examples/paper/throughput.py [--seconds N] [NETWORK ...]   (writes throughput.csv, throughput.png, of all)

Networks are the zoo's, through `grad`, op by op, with costs estimated for a V100; nothing is run. N is for each network
(150 on two idle cores, more where other work has its share of them). Throughput is over that without recomputation;
memory is what is live. All of a network's points come from one `sweep`.
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
from remat_cli.saying.pictures import canvas
from remat_cli.saying.pictures.curve import MARKERS
from solvers.clock import Clock
from solvers.problem import Limits

SECONDS = 150.0
BUDGETS = "40%..100%/5"
NETWORKS: dict[str, dict[str, Any]] = {
    "resnet101": {"batch": 8, "image": 1000},
    "resnet1001": {"batch": 32},
}
COMPARED = {"resnet101": ("periodic", "revolve", "rotor", "auto"), "resnet1001": ("periodic", "revolve", "rotor")}
COLUMNS = ("network", "method", "budget", "share", "status", "peak", "throughput", "seconds", "made by")


def measure(name: str, seconds: float) -> list[tuple[object, ...]]:
    subject = replace(step_of(name, **NETWORKS[name]), graph=None)  # the bare problem: what is live, and nothing else
    spent, began = time.process_time(), time.monotonic()
    asked = SweepQuestion(budgets=parse_budgets(BUDGETS), methods=COMPARED[name])
    curve = Sweep(subject, asked, Limits(Clock(seconds)), report=lambda at: print(name, at, file=sys.stderr)).run()
    took = f"{time.monotonic() - began:.0f} s, {time.process_time() - spent:.0f} s of CPU"
    print(f"{name}: {len(subject.nodes)} ops, {took}", flush=True)
    return [
        (
            *(name, point.method, point.budget, round(point.budget / curve.whole, 4), point.status.value),
            point.peak or "",
            round(curve.before.cost / point.cost, 4) if point.cost else "",
            *(round(point.seconds, 1), point.made_by if point.found else ""),
        )
        for point in curve.points
    ]


def draw(rows: list[tuple[Any, ...]], path: Path) -> None:
    names = [name for name in NETWORKS if any(row[0] == name for row in rows)]
    with canvas.drawing(path, 6 * len(names), 4.5) as figure:
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            for place, method in enumerate(COMPARED[name]):
                own = [row for row in rows if row[:2] == (name, method) and row[6] != ""]
                own.sort(key=lambda row: float(row[5]))
                places, rates = [float(row[5]) / 1e9 for row in own], [float(row[6]) for row in own]
                color = canvas.INK if method == "auto" else canvas.LINES[place]
                style = {"color": color, "marker": MARKERS[place], "markersize": 5, "drawstyle": "steps-post"}
                axes.plot(places, rates, label=method, **style)  # what fits less memory fits more
            axes.set_xlabel("memory (GB)")
            axes.set_ylabel("throughput, over that without recomputation")
            axes.grid(linewidth=0.6)
            axes.legend(fontsize=9)
            canvas.title(axes, f"{name}, batch {NETWORKS[name]['batch']}")


def main() -> None:
    stored = HERE / "throughput.csv"
    rows: list[tuple[Any, ...]] = [tuple(row) for row in csv.reader(stored.open())][1:] if stored.exists() else []
    networks, seconds = asked_for(NETWORKS, SECONDS)
    for name in networks:
        rows = [row for row in rows if row[0] != name] + measure(name, seconds)
        with stored.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    draw(rows, HERE / "throughput.png")


if __name__ == "__main__":
    main()
