"""Table 2 of the Checkmate paper (arXiv 1910.02653): FLOPs over the optimum's, geometric mean over budgets.

Usage: python examples/bench/table2.py [NETWORK ...]

Budgets lie evenly between the least peak that any method reaches and the peak without recomputation. What a network
gave last is kept in table2.json, and the table over all of them in table2.txt.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from math import exp, log
from pathlib import Path
from typing import Any

from layers import NETWORKS

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
    problem = NETWORKS[name]()
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


def main() -> None:
    stored = HERE / "table2.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name in sys.argv[1:] or NETWORKS:
        results[name] = measure(name)
        stored.write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "table2.txt").write_text(table(results))
    print(table(results), end="")


if __name__ == "__main__":
    main()
