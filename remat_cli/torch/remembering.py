"""Plans kept between runs: the same graph, budget and time ask for no second search.

The leanest plan known of a graph is kept whatever budget it was found for, so that no smaller budget gets one that
holds more. Within a process it is kept even where the user keeps no results.

Invariant: what is recalled is an order like any other: it is judged anew, and one that is not legal or does not fit is
forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from remat_cli.results.store import Store, folder, key_of
from remat_cli.results.versions import versions
from solvers.clock import Clock
from solvers.plan import IllegalOrder
from solvers.problem import Problem
from solvers.schedule import evaluate
from solvers.simulate import IllegalPlan


@dataclass(frozen=True, slots=True)
class Leanest:
    """The known order of least peak. `bound`: what no order can hold less than; `searched`: a search for the leanest
    has been made."""

    order: tuple[int, ...]
    bound: int = 0
    searched: bool = False


LEANEST: dict[str, Leanest] = {}  # of this process


def key(problem: Problem, clock: Clock, limit: int | None = None) -> str:
    """The key of all that an answer depends on; without a limit, of what is so for every budget."""
    graph = hashlib.sha256(repr(problem).encode()).hexdigest()
    time = [clock.seconds, clock.most]
    return key_of({"joint": graph, "budget": limit, "time": time, "versions": versions()})


def recall(problem: Problem, limit: int, where: str) -> tuple[tuple[int, ...], float | None] | None:
    """The order that was found before, and the bound; None if there is none that fits."""
    found = Store(folder()).get(where)
    order = None if found is None else _legal(problem, found)
    if found is None or order is None or _weight(problem, order)[0] > limit:
        return None
    return order, found.get("bound")


def recall_leanest(problem: Problem, where: str) -> Leanest | None:
    """The leanest order of the graph that was found for any budget."""
    if where in LEANEST:
        return LEANEST[where]
    found = Store(folder()).get(where)
    order = None if found is None else _legal(problem, found)
    if found is None or order is None:
        return None
    bound = found.get("bound")
    return Leanest(order, bound if isinstance(bound, int) else 0, found.get("searched") is True)


def remember_leanest(problem: Problem, where: str, found: Leanest) -> None:
    """Keep it, with what is known already: the leaner order, or the cheaper of two that hold the same."""
    known = recall_leanest(problem, where)
    if known is not None:
        order = min(known.order, found.order, key=lambda order: _weight(problem, order))
        found = Leanest(order, max(known.bound, found.bound), known.searched or found.searched)
    LEANEST[where] = found
    if found != known:
        Store(folder()).keep(where, {"method": "torch", "budget": None}, asdict(found))


def _weight(problem: Problem, order: tuple[int, ...]) -> tuple[int, int]:
    outcome = evaluate(problem, order)[1]
    return outcome.peak, outcome.cost


def _legal(problem: Problem, found: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The order of an entry, if it is one of this problem."""
    try:
        order = tuple(int(index) for index in found["order"])
        evaluate(problem, order)
    except (IllegalOrder, IllegalPlan, KeyError, IndexError, ValueError, TypeError):
        return None
    return order


def remember(where: str, order: Sequence[int], bound: float | None, limit: int) -> None:
    Store(folder()).keep(where, {"method": "torch", "budget": limit}, {"order": list(order), "bound": bound})
