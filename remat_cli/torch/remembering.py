"""Plans kept between runs: the same graph, budget and time ask for no second search.

The good plans known of a graph are kept whatever budget each was found for: a plan for less memory is a candidate for
more, and where nothing fits, the leanest is used. Within a process they are kept even where the user keeps no results.

Invariant: what is recalled is an order like any other: it is judged anew, and one that is not legal or does not fit is
forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from remat_cli.results.store import Store, folder, key_of
from remat_cli.results.versions import versions
from solvers.clock import Clock
from solvers.plan import IllegalOrder
from solvers.problem import Problem
from solvers.schedule import evaluate
from solvers.simulate import IllegalPlan

Order = tuple[int, ...]
Time = tuple[float, int | None]
MOST = 24  # orders kept of a graph


@dataclass(frozen=True, slots=True)
class Remembered:
    """`orders`: the leanest first; each later one holds more and costs less. `bound`: what no order can hold less than.
    `searched`: the times that searches for the leanest were given."""

    orders: tuple[Order, ...] = ()
    bound: int = 0
    searched: tuple[Time, ...] = ()


KNOWN: dict[str, Remembered] = {}  # of this process


def time_of(clock: Clock) -> Time:
    return clock.seconds, clock.most


def key(problem: Problem, limit: int | None = None, time: Time | None = None) -> str:
    """The key of all that an answer depends on; without a limit and a time, of what is so for all of them."""
    graph = hashlib.sha256(repr(problem).encode()).hexdigest()
    return key_of({"joint": graph, "budget": limit, "time": time and list(time), "versions": versions()})


def recall(problem: Problem, limit: int, where: str) -> tuple[Order, float | None] | None:
    """The order that was found before, and the bound; None if there is none that fits."""
    found = Store(folder()).get(where)
    order = None if found is None else legal(problem, found.get("order"))
    if found is None or order is None or _weight(problem, order)[0] > limit:
        return None
    return order, found.get("bound")


def remember(where: str, order: Sequence[int], bound: float | None, limit: int) -> None:
    Store(folder()).keep(where, {"method": "torch", "budget": limit}, {"order": list(order), "bound": bound})


def recall_known(problem: Problem, where: str) -> Remembered:
    """The good orders of the graph that were found for any budget."""
    if where in KNOWN:
        return KNOWN[where]
    found = Store(folder()).get(where) or {}
    orders, times = found.get("orders"), found.get("searched")
    sound = [order for given in orders or () if (order := legal(problem, given)) is not None]
    if not sound:
        return Remembered()
    bound = found.get("bound")
    searched = tuple((float(seconds), None if most is None else int(most)) for seconds, most in times or ())
    return Remembered(_frontier(problem, sound), bound if isinstance(bound, int) else 0, searched)


def remember_known(problem: Problem, where: str, found: Remembered) -> Remembered:
    """Keep it, with what is known already."""
    known = recall_known(problem, where)
    both = Remembered(
        _frontier(problem, [*known.orders, *found.orders]),
        max(known.bound, found.bound),
        tuple(dict.fromkeys([*known.searched, *found.searched])),
    )
    KNOWN[where] = both
    if both != known:
        Store(folder()).keep(where, {"method": "torch", "budget": None}, asdict(both))
    return both


def _frontier(problem: Problem, orders: Iterable[Order]) -> tuple[Order, ...]:
    """The orders that no other beats in both memory and cost, the leanest first."""
    kept: list[Order] = []
    least: int | None = None
    for (_, cost), order in sorted((_weight(problem, order), order) for order in dict.fromkeys(orders)):
        if least is None or cost < least:
            kept.append(order)
            least = cost
    return (kept[0], *kept[1:][-MOST + 1 :]) if kept else ()


def _weight(problem: Problem, order: Order) -> tuple[int, int]:
    outcome = evaluate(problem, order)[1]
    return outcome.peak, outcome.cost


def legal(problem: Problem, given: Any) -> Order | None:
    """The order of an entry, if it is one of this problem."""
    try:
        order = tuple(int(index) for index in given)
        evaluate(problem, order)
    except (IllegalOrder, IllegalPlan, IndexError, ValueError, TypeError):
        return None
    return order
