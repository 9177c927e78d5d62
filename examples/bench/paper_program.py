"""How long Checkmate's program takes on the paper's unit chains: as printed, without FREE_{t,k,k}, and beside `milp`.

Usage: python examples/bench/paper_program.py   (writes paper_program.json and paper_program.txt)

A chain of n layers has n forward and n + 1 backward ops, all of unit cost and size. Every solve goes on to a proved
optimum of its form, or for 15 s. Seconds are of the processor, so that what else the machine does counts for little.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from solvers.clock import Clock
from solvers.problem import Limits, Node, Problem
from solvers.registry import METHODS
from solvers.schedule import schedule

HERE = Path(__file__).parent
SECONDS = 15.0
CASES = [(4, 4), (8, 4), (8, 6), (12, 5), (12, 8)]
METHOD: dict[str, dict[str, Any]] = {"milp-paper": {}, "milp-paper --eliminate": {"eliminate": True}, "milp": {}}


def unit_chain(layers: int) -> Problem:
    """As in the paper's appendix A: the gradient of a layer reads its result, and the gradient after it."""
    nodes = [Node(1, (layer - 1,) if layer else (), (layer,)) for layer in range(layers)]
    nodes.append(Node(1, (layers - 1,), (layers,), backward=True))
    for layer in reversed(range(layers)):
        gradient = 2 * layers - 1 - layer
        nodes.append(Node(1, (layer, gradient), (gradient + 1,), backward=True))
    return Problem(tuple(nodes), (1,) * (2 * layers + 1), (2 * layers,))


def measure(layers: int, budget: int, name: str) -> dict[str, Any]:
    problem = unit_chain(layers)
    solver = METHODS[name.split()[0]].load(**METHOD[name])
    spent = time.process_time()
    found = schedule(problem, budget, solver, Limits(Clock(SECONDS), gap=0.0, seed=0))
    spent = time.process_time() - spent
    assert found.outcome is not None
    return {
        "layers": layers,
        "budget": budget,
        "method": name,
        "status": found.result.status.value,
        "cost": found.outcome.cost,
        "bound": round(found.result.bound or 0, 2),
        "cpu seconds": round(spent, 2),
    }


def table(rows: list[dict[str, Any]]) -> str:
    lines = [f"{'layers':>6}{'budget':>8}  " + "".join(f"{name:>32}" for name in METHOD)]
    for layers, budget in CASES:
        here = {row["method"]: row for row in rows if (row["layers"], row["budget"]) == (layers, budget)}
        cells = "".join(f"{cell(here[name]):>32}" for name in METHOD if name in here)
        lines.append(f"{layers:>6}{budget:>8}  {cells}")
    lines.append(f"\nCost, and CPU seconds to its proof; [bound] where there is none in {SECONDS:g} s, loaded machine.")
    return "\n".join(lines) + "\n"


def cell(row: dict[str, Any]) -> str:
    proof = "" if row["status"].startswith("optimal") else f" [{row['bound']:g}]"
    return f"{row['cost']}{proof}  {row['cpu seconds']:.2f} s"


def main() -> None:
    rows = []
    for layers, budget in CASES:
        rows += [measure(layers, budget, name) for name in METHOD]
        print(json.dumps(rows[-len(METHOD) :]), flush=True)
    (HERE / "paper_program.json").write_text(json.dumps(rows, indent=1) + "\n")
    (HERE / "paper_program.txt").write_text(table(rows))
    print(table(rows), end="")


if __name__ == "__main__":
    main()
