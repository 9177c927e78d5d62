"""Plans kept between runs: the same graph, budget and time ask for no second search.

The good plans known of a graph are kept whatever budget each was found for: a plan for less memory is a candidate for
more, and where nothing fits, the leanest is used. What was answered is kept as well, so that later answers agree with
it. Within a process all this is kept even where the user keeps no results.

Invariant: what is recalled is an order like any other: it is judged anew, and one that is not legal or does not fit is
forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
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
class PastAnswer:
    """The plan that a search of so much time answered for a limit, or for all limits that it misses, where that is 0.
    `bound`: the cost that no order within the limit goes below."""

    time: Time
    limit: int
    order: Order
    peak: int
    bound: float | None = None

    def holds_for(self, limit: int) -> bool:
        """A plan for more memory is one for less, as long as it fits."""
        return self.peak <= limit <= self.limit or limit < self.peak > self.limit == 0


@dataclass(frozen=True, slots=True)
class Remembered:
    """`orders`: the leanest first; each later one holds more and costs less. `bound`: what no order can hold less
    than. `answers`: no two are for the same time and limit."""

    orders: tuple[Order, ...] = ()
    bound: int = 0
    answers: tuple[PastAnswer, ...] = ()


KNOWN: dict[str, Remembered] = {}  # of this process


def time_of(clock: Clock) -> Time:
    return clock.seconds, clock.most


def key(problem: Problem, limit: int | None = None, time: Time | None = None) -> str:
    """The key of all that an answer depends on; without a limit and a time, of what is so for all of them."""
    graph = hashlib.sha256(repr(problem).encode()).hexdigest()
    return key_of({"joint": graph, "budget": limit, "time": time and list(time), "versions": versions()})


def recall(problem: Problem, where: str) -> Remembered:
    """What was found for the graph, for any budget."""
    if where in KNOWN:
        return KNOWN[where]
    found = Store(folder()).get(where) or {}
    orders, bound = found.get("orders"), found.get("bound")
    sound = [order for given in orders or () if (order := legal(problem, given)) is not None]
    if not sound:
        return Remembered()
    answers = [answer for given in found.get("answers") or () if (answer := _sound(problem, given)) is not None]
    return Remembered(_frontier(problem, sound), bound if isinstance(bound, int) else 0, tuple(answers))


def remember(problem: Problem, where: str, found: Remembered) -> Remembered:
    """Keep it, with what is known already."""
    known = recall(problem, where)
    answers = {(answer.time, answer.limit): answer for answer in (*found.answers, *known.answers)}
    both = Remembered(
        _frontier(problem, [*known.orders, *found.orders, *(answer.order for answer in found.answers)]),
        max(known.bound, found.bound),
        tuple(answers.values()),
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


def _sound(problem: Problem, given: Any) -> PastAnswer | None:
    """The answer of an entry, if its plan holds what was said of it."""
    order = legal(problem, given["order"])
    seconds, most = given["time"]
    answer = replace(PastAnswer(**given), time=(float(seconds), most), order=order or ())
    return answer if order is not None and _weight(problem, order)[0] == answer.peak else None


def legal(problem: Problem, given: Any) -> Order | None:
    """The order of an entry, if it is one of this problem."""
    try:
        order = tuple(int(index) for index in given)
        evaluate(problem, order)
    except (IllegalOrder, IllegalPlan, IndexError, ValueError, TypeError):
        return None
    return order
