"""How long Checkmate's program takes on the paper's unit chains: as printed, without FREE_{t,k,k}, and beside `milp`.

A chain of n layers has n forward and n + 1 backward ops, all of unit cost and size. Every solve goes on to a proved
optimum of its form, or for 15 s. Seconds are of the processor, so that what else the machine does counts for little.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from solvers.clock import Clock
from solvers.problem import Limits, Node, Problem
from solvers.registry import METHODS
from solvers.schedule import schedule

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


KEY = ("layers", "budget", "method")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for layers, budget in CASES:
        for name in METHOD:
            yield measure(layers, budget, name)
