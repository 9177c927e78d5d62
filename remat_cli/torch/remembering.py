"""Plans kept between runs: the same graph, budget and time ask for no second search.

Invariant: what is recalled is an order like any other: it is judged anew, and one that is not legal or does not fit is
forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from remat_cli.results.store import Store, folder, key_of
from remat_cli.results.versions import versions
from solvers.clock import Clock
from solvers.plan import IllegalOrder
from solvers.problem import Problem
from solvers.schedule import evaluate
from solvers.simulate import IllegalPlan


def key(problem: Problem, limit: int, clock: Clock) -> str:
    """The key of all that an answer depends on."""
    graph = hashlib.sha256(repr(problem).encode()).hexdigest()
    time = [clock.seconds, clock.most]
    return key_of({"joint": graph, "budget": limit, "time": time, "versions": versions()})


def recall(problem: Problem, limit: int, where: str) -> tuple[tuple[int, ...], float | None] | None:
    """The order that was found before, and the bound; None if there is none that fits."""
    found = Store(folder()).get(where)
    if found is None or not isinstance(found.get("order"), list):
        return None
    try:
        order = tuple(int(index) for index in found["order"])
        fits = evaluate(problem, order)[1].peak <= limit
    except (IllegalOrder, IllegalPlan, IndexError, ValueError, TypeError):
        return None
    return (order, found.get("bound")) if fits else None


def remember(where: str, order: Sequence[int], bound: float | None, limit: int) -> None:
    Store(folder()).keep(where, {"method": "torch", "budget": limit}, {"order": list(order), "bound": bound})
