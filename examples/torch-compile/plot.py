"""Draw what less memory costs, by torch and by remat. Usage: python plot.py [results.jsonl] (writes results.svg)"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("results.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()][1:]
    models = list(dict.fromkeys(row["model"] for row in rows))
    figure = Figure(figsize=(11, 6), layout="constrained")
    for place, model in enumerate(models):
        axes = figure.add_subplot(2, -(-len(models) // 2), place + 1)
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
