"""Parts of the default search, each switched off by `search.py run --without NAME`: what is lost then is its worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.auto import annealing, walking
from solvers.methods.auto.annealing import Annealing
from solvers.methods.auto.least_peak import LeastPeak
from solvers.methods.auto.raising import Raising
from solvers.methods.auto.within import Within


def _never_ready(operator: type) -> Callable[[], None]:
    return lambda: setattr(operator, "ready", lambda self: False)


def _values(owner: Any, **values: Any) -> Callable[[], None]:
    def switch() -> None:
        for name, value in values.items():
            setattr(owner, name, value)

    return switch


OPERATORS = (Annealing, walking.EvictionWalks, LeastPeak, Within, Raising)
PARTS: dict[str, Callable[[], None]] = {
    **{operator.name: _never_ready(operator) for operator in OPERATORS},
    "lazy orders": _values(walking, lazy_orders=lambda problem: [list(range(len(problem.nodes)))] * 2),
    "wide ops last": _values(walking, orders_with_wide_last=lambda *_: iter(())),
    "reordering": _values(walking, reorder=lambda local, order, *_: list(order)),
    "beginning afresh": _values(annealing, _USUAL=float("inf")),
    "moments": _values(BoundSearch, begin=lambda self, _: setattr(self, "begun", True)),
    "choice of pivots": _values(BoundSearch, _choose=lambda *_: iter(())),
}


def switch_off(name: str) -> None:
    PARTS[name]()
