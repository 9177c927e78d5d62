"""Draw what less memory costs, by torch and by remat, and say how they compare. Usage: python plot.py [results.jsonl]

Writes results.svg. Said of each of torch's partitions that none of its others beats in both: the extra time of remat's
cheapest plan of that peak or less, as a share of torch's.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, Any]
ALIKE = 1e-6  # of extra time


def beside(own: list[Row]) -> list[tuple[float, float | None]]:
    """For each of torch's best partitions of a model its extra time, and remat's at that peak, if there is a plan."""
    torchs = [row for row in own if row["by"].startswith("torch")]
    plans = [row for row in own if row["by"] in ("remat", "none")]
    best = {
        (row["peak"], round(row["overhead"], 6)): row
        for row in torchs
        if row["overhead"] > ALIKE
        and not any(o["peak"] <= row["peak"] and o["overhead"] < row["overhead"] - ALIKE for o in torchs)
    }
    return [
        (row["overhead"], min((plan["overhead"] for plan in plans if plan["peak"] <= row["peak"]), default=None))
        for row in best.values()
    ]


def say(rows: list[Row]) -> None:
    pairs = [
        pair for name in {row["model"] for row in rows} for pair in beside([r for r in rows if r["model"] == name])
    ]
    met = [(theirs, ours) for theirs, ours in pairs if ours is not None]
    dearer = sum(ours > theirs + ALIKE for theirs, ours in met)
    middle = statistics.median(ours / theirs for theirs, ours in met)
    print(f"{len(pairs)} partitions, {len(pairs) - len(met)} without a plan, {dearer} dearer, median {middle:.3f}")


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("results.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()][1:]
    say([row for row in rows if "peak" in row])
    models = list(dict.fromkeys(row["model"] for row in rows))
    high = -(-len(models) // 4)
    figure = Figure(figsize=(11, 2.6 * high), layout="constrained")
    for place, model in enumerate(models):
        axes = figure.add_subplot(high, 4, place + 1)
        own = [row for row in rows if row["model"] == model and "peak" in row]
        whole = own[0]["peak"]
        for name, colour, mark in (("torch", "#c0392b", "x"), ("remat", "#2471a3", "o")):
            points = sorted((row["peak"] / whole, row["overhead"]) for row in own if row["by"].startswith(name))
            style = "-" if name == "remat" else ""
            axes.plot(*zip(*points, strict=True), mark + style, color=colour, label=name, markersize=4)
        axes.set_title(model)
        axes.xaxis.set_major_formatter("{x:.0%}")
        axes.yaxis.set_major_formatter("{x:.0%}")
    figure.supxlabel("peak, of that without recomputation")
    figure.supylabel("extra time, by the same costs")
    figure.axes[0].legend()
    figure.savefig(path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
