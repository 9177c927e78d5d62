"""Table 2 of the Checkmate paper (arXiv 1910.02653): FLOPs over the optimum's, geometric mean over budgets.

Usage: python examples/paper/table2.py [--draw | NETWORK ...]

Budgets lie evenly between the least peak that any method reaches and the peak without recomputation. What a network
gave last is kept in table2.json, and the table over all of them in table2.txt, table2.csv and table2.png, which --draw
writes again without solving anything.
"""

from __future__ import annotations

import csv
import json
import platform
import sys
import time
from math import exp, log
from pathlib import Path
from typing import Any

from layers import NETWORKS

from remat_cli.saying.pictures import canvas
from solvers.clock import Clock
from solvers.methods.baselines.forward import forward_nodes
from solvers.methods.baselines.links import links
from solvers.problem import Limits, Problem, Solver
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule

BUDGETS = 6
HERE = Path(__file__).parent
COMPARED = (
    *("chen-sqrt", "chen-greedy", "ap-sqrt", "ap-greedy", "griewank log n", "lp-rounding", "lp-walks"),
    *("linearized-sqrt", "linearized-greedy", "griewank", "periodic", "evict"),
    *("checkpoint-layers", "full-checkpoint", "recompute-all"),
)
PUBLISHED = {  # Chen sqrt(n), Chen greedy, Griewank log n, two-phase LP rounding
    "MobileNet": (1.14, 1.07, 7.07, 1.06),
    "VGG-16": (1.28, 1.06, 1.44, 1.01),
    "VGG-19": (1.54, 1.39, 1.75, 1.00),
    "U-Net": (1.27, 1.23, None, 1.03),
    "ResNet-50": (1.20, 1.25, None, 1.05),
}


def limits() -> Limits:
    return Limits(Clock(10.0), gap=1e-4, seed=0)


def solver_of(method: str, problem: Problem) -> Solver:
    if method == "griewank log n":
        return METHODS["griewank"].load(snapshots=len(links(problem) or forward_nodes(problem)).bit_length())
    return METHODS[method].load()


def measure(name: str) -> dict[str, Any]:
    """The ratios of every method at every budget; None where it finds no plan."""
    problem = NETWORKS[name]().problem()
    full = baseline(problem)[1].peak
    least = min(peak_of(problem, method) for method in ("recompute-all", "evict", "ap-greedy"))
    budgets = [full - (full - least) * step // (BUDGETS + 1) for step in range(1, BUDGETS + 1)]
    optima = [schedule(problem, budget, METHODS["milp"].load(), limits()) for budget in budgets]
    rows = {}
    for method in COMPARED:
        began = time.perf_counter()
        found = [schedule(problem, budget, solver_of(method, problem), limits()) for budget in budgets]
        rows[method] = {
            "seconds": round((time.perf_counter() - began) / len(budgets), 2),
            "ratios": [ratio(mine, best) for mine, best in zip(found, optima, strict=True)],
        }
    costs = [best.outcome.cost for best in optima if best.outcome]
    gaps = [cost / best.result.bound - 1 for cost, best in zip(costs, optima, strict=True) if best.result.bound]
    return {
        "nodes": len(problem.nodes),
        "budgets": [round(budget / full, 3) for budget in budgets],
        "optimum": [round(cost / baseline(problem)[1].cost, 4) for cost in costs],
        "largest gap": round(max(gaps), 5),
        "methods": rows,
    }


def peak_of(problem: Problem, method: str) -> int:
    outcome = schedule(problem, 0, METHODS[method].load(), limits()).outcome
    assert outcome is not None
    return outcome.peak


def ratio(mine: Any, best: Any) -> float | None:
    if not mine.result.status.found:
        return None
    return round(mine.outcome.cost / best.outcome.cost, 4)


def mean(ratios: list[float | None]) -> str:
    """The geometric mean where there is a plan, and for how many budgets that is."""
    found = [value for value in ratios if value is not None]
    if not found:
        return f"-  0/{len(ratios)}"
    return f"{exp(sum(map(log, found)) / len(found)):.3f} {len(found)}/{len(ratios)}"


def table(results: dict[str, Any]) -> str:
    names = [name for name in NETWORKS if name in results]
    lines = ["".join(f"{cell:>19}" for cell in ("", *names))]
    for method in COMPARED:
        known = (results[name]["methods"].get(method) for name in names)
        cells = (mean(row["ratios"]) if row else "" for row in known)
        lines.append(f"{method:<19}" + "".join(f"{cell:>19}" for cell in cells))
    published = ("Chen sqrt(n)", "Chen greedy", "Griewank log n", "two-phase rounding")
    lines += ["", "published"]
    for place, method in enumerate(published):
        figures = (PUBLISHED[name][place] if name in PUBLISHED else None for name in names)
        lines.append(f"{method:<19}" + "".join(f"{figure or '-':>19}" for figure in figures))
    lines.append("")
    for name in names:
        row = results[name]
        lines.append(
            f"{name}: {row['nodes']} nodes, budgets {row['budgets']}, optimum / no recomputation "
            f"{row['optimum']} (gap at most {row['largest gap']})"
        )
    lines.append(
        f"\nk/{BUDGETS}: budgets within which the method has a plan. Seed {limits().seed}, "
        f"{limits().clock.seconds:g} s a solve, gap {limits().gap:g}; {platform.machine()}, "
        f"Python {platform.python_version()}."
    )
    return "\n".join(lines) + "\n"


SAID = dict(zip(("chen-sqrt", "chen-greedy", "griewank log n", "lp-rounding"), range(4), strict=True))


def rows(results: dict[str, Any]) -> list[tuple[object, ...]]:
    """Method by network: the mean ratio, for how many budgets there is a plan, and what the paper prints."""
    found: list[tuple[object, ...]] = [("network", "method", "ratio", "budgets with a plan", "of", "published")]
    for name, result in results.items():
        for method, row in result["methods"].items():
            known = [ratio for ratio in row["ratios"] if ratio is not None]
            ratio = round(exp(sum(map(log, known)) / len(known)), 4) if known else ""
            said = PUBLISHED[name][SAID[method]] if method in SAID and name in PUBLISHED else None
            found.append((name, method, ratio, len(known), len(row["ratios"]), said or ""))
    return found


def draw(results: dict[str, Any], path: Path) -> None:
    """The methods of the paper's table, and ours, beside what it prints."""
    shown = [row for row in rows(results)[1:] if row[1] in SAID or row[1] in ("lp-walks", "evict")]
    names, methods = list(dict.fromkeys(row[0] for row in shown)), list(dict.fromkeys(row[1] for row in shown))
    with canvas.drawing(path, 11, 4.5) as figure:
        axes = figure.subplots()
        for place, method in enumerate(methods):
            own = [row for row in shown if row[1] == method]
            places = [names.index(row[0]) + 0.13 * (place - (len(methods) - 1) / 2) for row in own]
            tops = [min(2.0, float(str(row[2]))) if row[2] != "" else 0.0 for row in own]
            axes.bar(places, tops, 0.12, color=canvas.LINES[place], label=method)
            said = [(x, min(2.0, float(str(row[5])))) for x, row in zip(places, own, strict=True) if row[5] != ""]
            axes.scatter(*zip(*said, strict=True), marker="_", s=90, color=canvas.INK, zorder=3) if said else None
        axes.set_xticks(range(len(names)), names)
        axes.set_ylim(0.95, 2.0)
        axes.set_ylabel("time over the optimum's (dashes: published)")
        canvas.title(axes, "Time over the optimum's, geometric mean over budgets; cut off at 2")
        figure.legend(loc="outside lower center", ncols=6, fontsize=9)


def main() -> None:
    stored = HERE / "table2.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name in (sys.argv[1:] or NETWORKS) if sys.argv[1:] != ["--draw"] else ():
        results[name] = measure(name)
        stored.write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "table2.txt").write_text(table(results))
    with (HERE / "table2.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows(results))
    draw(results, HERE / "table2.png")
    print(table(results), end="")


if __name__ == "__main__":
    main()
