"""Parts of the default search, each switched off by `search.py run --without NAME`: what is lost then is its worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.auto import above, auto
from solvers.methods.auto.steps import Steps
from solvers.methods.exact import improve


def nothing(*_: Any, **__: Any) -> None:
    return None


def _no_methods(owner: type, *names: str) -> Callable[[], None]:
    def switch() -> None:
        for name in names:
            setattr(owner, name, nothing)

    return switch


def _values(owner: Any, **values: Any) -> Callable[[], None]:
    def switch() -> None:
        for name, value in values.items():
            setattr(owner, name, value)

    return switch


PARTS: dict[str, Callable[[], None]] = {
    "lazy orders": _values(auto, lazy_orders=lambda problem: [list(range(len(problem.nodes)))] * 2),
    "wide ops last": _values(auto, orders_with_wide_last=lambda *_: iter(())),
    "walks": _no_methods(Steps, "walk"),
    "reordering": _no_methods(Steps, "reorder"),
    "annealing at once": _no_methods(Steps, "approach_at_once"),
    "low walks": _no_methods(Steps, "walk_low"),
    "least peak": _no_methods(Steps, "dig"),
    "annealing from walks": _values(Steps, try_walked=lambda self, walks: []),
    "annealing from the leanest": _no_methods(Steps, "approach_leanest"),
    "annealing towards the budget": _no_methods(Steps, "approach"),
    "mending": _no_methods(Steps, "mend"),
    "tournament": _no_methods(Steps, "compete_again"),
    "later tournaments": _values(auto, _STUCK=1 << 60),
    "larger budgets, passes, ladder": _values(Steps, come_from=nothing),
    "larger budgets": _values(above, _PARTS=()),
    "passes, ladder": _values(auto, _ABSURD=1 << 60),
    "two passes": _values(auto, _PUT_OFF=()),
    "stretches": _no_methods(Steps, "stretch"),
    "annealing nearby": _no_methods(Steps, "search_nearby"),
    "within one order": _no_methods(auto.Auto, "search_within"),
    "windows of milp": _values(improve, _WIDE=0),
    "bound over all orders": _no_methods(BoundSearch, "go_on"),
    "annealing from the bound": _values(BoundSearch, order=property(nothing, nothing)),
    "moments": _values(BoundSearch, begin=lambda self: setattr(self, "begun", True)),
    "choice of pivots": _no_methods(BoundSearch, "_choose"),
}


def switch_off(name: str) -> None:
    PARTS[name]()
