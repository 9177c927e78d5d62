"""Rotor on ONNX models beside Revolve and equal segments, and what its sequences need by its own rules.

Usage: python examples/paper/rotor.py [--draw | NETWORK ...]   (writes rotor.json, and rotor.txt, .csv and .png over
all of it; --draw: of what is there)

Networks are the zoo's, through `grad`, op by op, with costs estimated for a V100, within 70% of the peak without
recomputation (VGG: 92%). "rules": the peak of Rotor's sequence on the model's chain (`remat problem --chain`) by the
paper's rules; "chain", "model": that of its order of computes as simulated on the chain's problem and on the model,
over it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from kept import HERE, kept, step_of, write_table

from remat_cli.formats import chainfile, problemfile
from remat_cli.saying.pictures import canvas
from solvers.clock import Clock
from solvers.methods.chains.chain import StageOp, simulate
from solvers.methods.chains.from_graph import cut
from solvers.methods.chains.rotor import rotor
from solvers.methods.chains.staged import chain_of, plain
from solvers.orders.arrays import arrays_of
from solvers.problem import Limits, Problem
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import baseline, evaluate, schedule

NETWORKS: dict[str, dict[str, Any]] = {
    "rotor-toy": {},
    "vgg19": {"batch": 32},
    "resnet101": {"batch": 8},
    "densenet121": {"batch": 8},
    "inception-v3": {"batch": 8},
}
SHARES = {"vgg19": 0.92}
METHOD = ("rotor", "revolve", "periodic")
SECONDS = 20.0


def measure(name: str) -> dict[str, Any]:
    problem = step_of(name, **NETWORKS[name]).problem
    before, share = baseline(problem)[1], SHARES.get(name, 0.7)
    found: dict[str, Any] = {"ops": len(problem.nodes), "budget": share, **by_the_rules(problem)}
    for method in METHOD:
        spent = time.process_time()
        done = schedule(problem, int(share * before.peak), METHODS[method].load(), Limits(Clock(SECONDS)))
        assert done.outcome is not None
        found[method] = {
            "status": done.result.status.value,
            "cost": round(done.outcome.cost / before.cost, 4),
            "peak": round(done.outcome.peak / before.peak, 4),
            "cpu seconds": round(time.process_time() - spent, 2),
        }
    return found


def by_the_rules(problem: Problem) -> dict[str, float]:
    """For the sequence within nine tenths of what all of the chain takes at once."""
    smaller = reduced(problem).problem
    chain, held = chain_of(smaller)
    chain = replace(chain, o_b=tuple(max(0, size) for size in chain.o_b))
    written = problemfile.loads(chainfile.dumps(chain, held)).problem
    sequence = rotor(chain, int(0.9 * baseline(written)[1].peak) - held) or rotor(chain, baseline(written)[1].peak)
    assert sequence is not None
    rules = simulate(chain, sequence).peak + held
    order: list[int] = []
    for step in sequence:
        order += [chain.length] if step.op is StageOp.BACK and step.stage == chain.length else []
        order.append(step.stage - 1 if step.op is not StageOp.BACK else 2 * chain.length + 1 - step.stage)
    graph = plain(cut(smaller), arrays_of(smaller)).found(sequence).peak
    return {
        "stages": chain.length,
        "chain over rules": round(evaluate(written, order)[1].peak / rules, 4),
        "model over rules": round(graph / rules, 4),
    }


def table(results: dict[str, Any]) -> str:
    words = ("ops", "stages", "budget", "chain/rules", "model/rules", *METHOD)
    lines = [f"{'':<14}" + "".join(f"{word:>13}" for word in words)]
    for name, row in results.items():
        cells = [row["ops"], row["stages"], f"{row['budget']:.0%}", row["chain over rules"], row["model over rules"]]
        for method in METHOD:
            one = row[method]
            fits = one["peak"] <= row["budget"]
            cells.append(f"{one['cost'] - 1:+.1%}" if fits else f"needs {one['peak']:.0%}")
        lines.append(f"{name:<14}" + "".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines) + "\n"


def rows(results: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            *(name, row["ops"], row["stages"], row["budget"], row["chain over rules"], row["model over rules"], method),
            *(one["peak"] <= row["budget"], one["cost"], one["peak"], one["cpu seconds"]),
        )
        for name, row in results.items()
        for method, one in ((method, row[method]) for method in METHOD)
    ]


def draw(results: dict[str, Any]) -> None:
    width = 0.8 / len(METHOD)
    with canvas.drawing(HERE / "rotor.png", 8, 4) as figure:
        axes = figure.subplots()
        for place, method in enumerate(METHOD):
            for at, row in enumerate(results.values()):
                one, x = row[method], at + (place - 1) * width
                if one["peak"] > row["budget"]:
                    words = f"needs {one['peak']:.0%}"
                    axes.annotate(words, (x, 0.3), rotation=90, ha="center", fontsize=8, color=canvas.QUIET)
                    continue
                bar = axes.bar(x, 100 * (one["cost"] - 1), 0.9 * width, color=canvas.LINES[place])
                axes.bar_label(bar, fmt="%.1f", fontsize=8, color=canvas.QUIET)
            axes.bar(0, 0, color=canvas.LINES[place], label=method)
        names = [f"{name}\n{row['budget']:.0%}" for name, row in results.items()]
        axes.set_xticks(range(len(results)), names, color=canvas.INK)
        axes.set_ylabel("time added (%)")
        axes.legend(fontsize=9)
        canvas.title(axes, "Chains of networks, by Rotor, Revolve and equal segments", "below: the budget, of the peak")


def main() -> None:
    results = kept("rotor", NETWORKS, measure)
    (HERE / "rotor.txt").write_text(table(results))
    head = ("network", "ops", "stages", "budget", "chain over rules", "model over rules", "method", "fits", "ratio")
    write_table("rotor", (*head, "peak", "cpu seconds"), rows(results))
    draw(results)
    print(table(results), end="")


if __name__ == "__main__":
    main()
