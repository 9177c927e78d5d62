"""Bytes moved by a training step, by network: as it is, with the minimum cut, and with a full checkpoint.

Usage: python examples/paper/traffic.py [--draw | NETWORK ...]   (writes traffic.json, and traffic.txt, .csv and
.png over all of it; --draw: of what is there)

Networks are the zoo's, through `grad`, with costs estimated for a CPU, for sessions that fuse as they do by default;
nothing is timed. Fused: as far as neighbours could share a kernel (Yu and He); seen: by the kernels that onnxruntime
itself makes of the step on a CPU, where what is computed again is fused as it was the first time; unfused: every op by
itself. Min-cut is the paper's cut, without a budget.
"""

from __future__ import annotations

from typing import Any

from kept import HERE, kept, step_of, write_table

from remat_cli.model.sessions import DEFAULT
from remat_cli.planning.subjects.fusing import as_fused
from remat_cli.saying.pictures import canvas
from solvers.clock import Clock
from solvers.methods.mincut.options import CutOptions
from solvers.methods.mincut.traffic import traffic_of
from solvers.problem import Limits, Problem
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule

NETWORKS: dict[str, dict[str, Any]] = {
    "vgg16": {"batch": 8},
    "resnet50": {"batch": 8},
    "resnest50": {"batch": 8},
    "regnety-400mf": {"batch": 8},
    "vovnet39": {"batch": 8},
    "unet": {"batch": 2, "image": 192},
    "gpt2": {"batch": 2, "seq": 256},
    "bert-base": {"batch": 2, "seq": 256},
    "albert-base": {"batch": 2, "seq": 256},
}
FUSIONS = ("none", "runtime", "ideal")
PLANS = {"min-cut": CutOptions(objective="paper"), "full-checkpoint": None}


def measure(name: str) -> dict[str, Any]:
    subject = as_fused(step_of(name, "cpu", DEFAULT, **NETWORKS[name]))
    problem = subject.problem
    before = baseline(problem)[1]
    found: dict[str, Any] = {"ops": len(problem.nodes), "as it is": moved(problem, range(len(problem.nodes)))}
    for method, options in PLANS.items():
        told = {"objective": options.objective} if options else {}
        answer = schedule(problem, 1 << 60, METHODS[method].load(**told), Limits(Clock(60.0)))
        assert answer.result.order is not None
        assert answer.outcome is not None
        found[method] = {
            **moved(problem, answer.result.order),
            "time": round(answer.outcome.cost / before.cost - 1, 4),
            "peak": round(answer.outcome.peak / before.peak - 1, 4),
        }
    return found


def moved(problem: Problem, order: Any) -> dict[str, float]:
    """Megabytes, with each notion of fusion."""
    return {fusion: round(traffic_of(problem, order, fusion).total / 1e6, 1) for fusion in FUSIONS}


def table(results: dict[str, Any]) -> str:
    named = "".join(f"{words:>10}" for words in ("unfused", "seen", "fused"))
    lines = [f"{'':<14}{'MB as it is':>30}" + "".join(f"{method:>48}" for method in PLANS)]
    lines.append(f"{'network':<14}{named}" + f"{named}{'time':>9}{'peak':>9}" * 2)
    for name, row in results.items():
        plain = row["as it is"]
        cells = "".join(f"{plain[fusion]:>10}" for fusion in FUSIONS)
        for method in PLANS:
            plan = row[method]
            cells += "".join(f"{plan[fusion] / plain[fusion] - 1:>10.1%}" for fusion in FUSIONS)
            cells += f"{plan['time']:>9.1%}{plan['peak']:>9.1%}"
        lines.append(f"{name:<14}{cells}")
    return "\n".join(lines) + "\n"


def rows(results: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (name, row["ops"], made, *(row[made][fusion] for fusion in FUSIONS), one.get("time", 0), one.get("peak", 0))
        for name, row in results.items()
        for made, one in ((made, row[made]) for made in ("as it is", *PLANS))
    ]


def draw(results: dict[str, Any]) -> None:
    """Bytes that fused kernels move, as the step is and with each plan."""
    made, height = ("as it is", *PLANS), 0.8 / 3
    with canvas.drawing(HERE / "traffic.png", 8, 0.55 * len(results) + 1.4) as figure:
        axes = figure.subplots()
        for place, (name, color) in enumerate(zip(made, (canvas.GRID, *canvas.LINES), strict=False)):
            moved = [row[name]["ideal"] / 1e3 for row in results.values()]
            bars = axes.barh([at + place * height for at in range(len(results))], moved, 0.9 * height, color=color)
            bars.set_label(name)
            if name != "as it is":
                plain = [row["as it is"]["ideal"] / 1e3 for row in results.values()]
                changes = [f"{new / old - 1:+.1%}" for new, old in zip(moved, plain, strict=True)]
                axes.bar_label(bars, changes, fontsize=8, color=canvas.QUIET, padding=3)
        axes.set_yticks([at + height for at in range(len(results))], list(results), color=canvas.INK)
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.set_xlabel("GB moved by a step, neighbours sharing a kernel where they can")
        axes.legend(fontsize=9, loc="lower right")
        canvas.title(axes, "Bytes moved: the minimum cut, and full checkpoints")


def main() -> None:
    results = kept("traffic", NETWORKS, measure)
    (HERE / "traffic.txt").write_text(table(results))
    head = ("network", "ops", "plan", "unfused MB", "seen MB", "fused MB", "time added", "peak added")
    write_table("traffic", head, rows(results))
    draw(results)
    print(table(results), end="")


if __name__ == "__main__":
    main()
