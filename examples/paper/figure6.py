"""Figure 6 of the Checkmate paper (arXiv 1910.02653): the largest batch on a GPU of 16 GB, at one extra forward pass.

Usage: python examples/paper/figure6.py [NETWORK ...]   (writes figure6.csv and figure6.png over all of it)

Networks are by layers, costs in FLOPs, as in the paper: 16 GiB hold the inputs, twice the parameters and the values; a
gradient reads all that its layer read and wrote; a step may cost one more forward pass than without recomputation
(equations (9) and (10)). What fits has a plan for that very batch; what does not is proved for the layers' order of
first computes, which the paper's program keeps as well. `below`: the least batch that is proved not to fit.
"""

from __future__ import annotations

import csv
import sys
import time
from functools import cache
from pathlib import Path

from layers import NETWORKS, vgg_unet

from remat_cli.actions.largest import SizeQuestion, find_largest
from remat_cli.formats.planfile import Source
from remat_cli.model.problem_of import Named
from remat_cli.model.quantities import parse_budget
from remat_cli.planning.subjects.subject import Subject
from remat_cli.saying.pictures import canvas
from solvers.clock import Clock
from solvers.problem import Limits

HERE = Path(__file__).parent
SECONDS = 120.0
PUBLISHED = {  # without recomputation, and Checkmate's
    "U-Net": (16, 61),
    "FCN8": (29, 60),
    "SegNet": (21, 62),
    "VGG-19": (167, 289),
    "ResNet-50": (98, 225),
    "MobileNet": (215, 1105),
}
BASELINES = ("checkpoint-all", "ap-sqrt", "ap-greedy", "linearized-sqrt", "linearized-greedy")


def at(name: str, batch: int) -> Subject:
    problem = (vgg_unet if name == "U-Net" else NETWORKS[name])().problem(batch)
    nodes = tuple(f"node{place}" for place in range(len(problem.nodes)))
    values = tuple(f"value{place}" for place in range(len(problem.sizes)))
    return Subject(source=Source(Path(name), f"{name} at {batch}"), named=Named(problem, nodes, values))


def measure(name: str) -> dict[str, object]:
    spent, began = time.process_time(), time.monotonic()
    asked = SizeQuestion(budget=parse_budget("16GiB"), method="milp", baselines=BASELINES)
    found = find_largest(cache(lambda batch: at(name, batch)), asked, Limits(Clock(SECONDS)))
    return {
        "network": name,
        "published checkpoint-all": PUBLISHED[name][0],
        "published": PUBLISHED[name][1],
        "batch": found.size,
        "status": "proved" if found.proved else "best known",
        "next": found.next.verdict,
        "below": found.below.size if found.below else "",
        "overhead": round(found.plan.overhead, 4),
        **{method: "" if size is None else size for method, size in found.baselines.items()},
        "seconds": round(time.monotonic() - began, 1),
        "cpu seconds": round(time.process_time() - spent, 1),
    }


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Each network's batches over its largest without recomputation, as the paper draws them."""
    kinds = [*BASELINES, "batch", "published"]
    names = {"batch": "remat", "published": "Checkmate, published"}
    with canvas.drawing(path, 10, 4.5) as figure:
        axes = figure.subplots()
        for place, kind in enumerate(kinds):
            heights = [float(str(row[kind] or 0)) / float(str(row["checkpoint-all"])) for row in rows]
            middle = place - (len(kinds) - 1) / 2
            bars = [number + 0.11 * middle for number in range(len(rows))]
            color = canvas.INK if kind == "published" else canvas.LINES[place]
            drawn = axes.bar(bars, heights, 0.1, color=color, label=names.get(kind, kind))
            axes.bar_label(drawn, [str(row[kind] or "") for row in rows], fontsize=7, rotation=90, padding=2)
        axes.set_xticks(range(len(rows)), [str(row["network"]) for row in rows])
        axes.set_ylabel("batch, over that without recomputation")
        axes.margins(y=0.15)
        canvas.title(axes, "The largest batch in 16 GiB, at most one extra forward pass")
        figure.legend(loc="outside lower center", ncols=4, fontsize=9)


def main() -> None:
    stored = HERE / "figure6.csv"
    known = {row["network"]: row for row in csv.DictReader(stored.open())} if stored.exists() else {}
    for name in sys.argv[1:] or PUBLISHED:
        known[name] = measure(name)
        print(known[name], flush=True)
        rows = [known[network] for network in PUBLISHED if network in known]
        with stored.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(known[name]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    draw(rows, HERE / "figure6.png")


if __name__ == "__main__":
    main()
