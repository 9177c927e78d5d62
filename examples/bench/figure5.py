"""Figure 5 of the Checkmate paper (arXiv 1910.02653) from ONNX models: what each method of its Table 1 costs and needs.

Usage: python examples/bench/figure5.py [NETWORK ...]   (writes figure5.json, and figure5.txt over all of it)

Networks are the zoo's, through `grad`, op by op, with the paper's batches and images, and costs estimated for a V100;
nothing is run. Four budgets lie evenly between what any schedule needs at least and the peak without recomputation.
Where a method's plan is over a budget, what it does need is told.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from remat_cli.actions.profiling import Asked, profile
from remat_cli.gradient.training import Options, training_graph
from remat_cli.planning.loading import given_subject
from remat_cli.planning.subject import Subject
from remat_cli.zoo.build import build
from solvers.clock import Clock
from solvers.methods.baselines.forward import forward_nodes
from solvers.methods.baselines.links import links
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Problem, Solver
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule

HERE = Path(__file__).parent
BUDGETS = 4
SECONDS = {"milp": 15.0, "lp-walks": 10.0}
NETWORKS: dict[str, dict[str, Any]] = {
    "vgg16": {"batch": 256},
    "mobilenet-v1": {"batch": 512},
    "unet": {"batch": 32, "image": (416, 608)},
}
COMPARED = (
    *("checkpoint-all", "griewank log n", "griewank", "chen-sqrt", "chen-greedy"),
    *("ap-sqrt", "ap-greedy", "linearized-sqrt", "linearized-greedy", "lp-rounding", "lp-walks", "milp"),
)


def limits(method: str) -> Limits:
    return Limits(Clock(SECONDS.get(method, 15.0)), gap=1e-4, seed=0)


def step_of(name: str) -> Subject:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        forward = build(name, weights="inputs", **NETWORKS[name])
        path.write_bytes(training_graph(forward, Options()).SerializeToString())
        costs = profile(path, Asked(estimate="v100", cached=False), lambda _: None).costs
        return given_subject(path, costs, {})


def solver_of(method: str, problem: Problem) -> Solver:
    if method == "griewank log n":
        return METHODS["griewank"].load(snapshots=len(links(problem) or forward_nodes(problem)).bit_length())
    return METHODS[method].load()


def measure(name: str) -> dict[str, Any]:
    problem = step_of(name).problem
    full = baseline(problem)[1]
    least = peak_bound(problem).peak
    budgets = [full.peak - (full.peak - least) * step // (BUDGETS + 1) for step in range(1, BUDGETS + 1)]
    rows = {}
    for method in COMPARED:
        spent = time.process_time()
        points = [point(problem, budget, method) for budget in budgets]
        rows[method] = {"cpu seconds": round((time.process_time() - spent) / BUDGETS, 2), "points": points}
        print(name, method, rows[method], file=sys.stderr, flush=True)
    return {
        "nodes": len(problem.nodes),
        "peak": full.peak,
        "cost": full.cost,
        "budgets": [round(budget / full.peak, 3) for budget in budgets],
        "methods": rows,
    }


def point(problem: Problem, budget: int, method: str) -> dict[str, Any]:
    full = baseline(problem)[1]
    found = schedule(problem, budget, solver_of(method, problem), limits(method))
    assert found.outcome is not None
    proved = method == "milp" and found.result.bound is not None
    return {
        "fits": found.outcome.peak <= budget,
        "cost": round(found.outcome.cost / full.cost, 4),
        "peak": round(found.outcome.peak / full.peak, 4),
        **({"bound": round((found.result.bound or 0) / full.cost, 4)} if proved else {}),
        "notes": list(found.result.notes),
    }


def cell(found: dict[str, Any]) -> str:
    if _is_no_answer(found):
        return "-"
    return f"{found['cost']:.3f}" if found["fits"] else f"({found['cost']:.3f} at {found['peak']:.0%})"


def _is_no_answer(found: dict[str, Any]) -> bool:
    """Everything run once, by a method that could say no more, and why."""
    return not found["fits"] and found["cost"] == 1 and bool(found["notes"])


def table(results: dict[str, Any]) -> str:
    lines = []
    for name in (name for name in NETWORKS if name in results):
        row = results[name]
        batch, nodes = NETWORKS[name]["batch"], row["nodes"]
        lines.append(f"{name}, batch {batch}: {nodes} ops, {row['peak'] / 1e9:.2f} GB without recomputation")
        lines.append(f"{'time within':<19}" + "".join(f"{f'{budget:.1%}':>18}" for budget in row["budgets"]))
        for method, found in row["methods"].items():
            lines.append(f"{method:<19}" + "".join(f"{cell(one):>18}" for one in found["points"]))
        lines.append(
            f"{'milp, bound':<19}" + "".join(f"{bound_of(one):>18}" for one in row["methods"]["milp"]["points"])
        )
        lines += [*without_plan(row), ""]
    lines.append("Time and memory over those without recomputation. (time at memory): what the method comes to, over")
    lines.append("the budget. Seconds a solve: 15, lp-walks 10; seed 0; on a loaded machine.")
    return "\n".join(lines) + "\n"


def without_plan(row: dict[str, Any]) -> list[str]:
    """The methods that have no schedule of their own at some budget, and what they say."""
    said = {}
    for method, found in row["methods"].items():
        for one in found["points"]:
            if _is_no_answer(one):
                said[method] = one["notes"][0]
    return [f"- {method}: {why}" for method, why in said.items()]


def bound_of(found: dict[str, Any]) -> str:
    return f"{found['bound']:.3f}" if "bound" in found else "-"


def main() -> None:
    stored = HERE / "figure5.json"
    results = json.loads(stored.read_text()) if stored.exists() else {}
    for name in sys.argv[1:] or NETWORKS:
        results[name] = measure(name)
        stored.write_text(json.dumps(results, indent=1) + "\n")
    (HERE / "figure5.txt").write_text(table(results))
    print(table(results), end="")


if __name__ == "__main__":
    main()
