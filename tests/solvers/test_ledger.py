"""Who found what, and what it took."""

from __future__ import annotations

from solvers.clock import limited
from solvers.ledger import Ledger
from solvers.methods.auto.auto import solve
from solvers.methods.exact.milp import solve as milp
from solvers.orders.best import GIVEN, Best
from solvers.problem import Limits, Node, Problem, Progress

# a value read at both ends, and a wide one between
PROBLEM = Problem(
    (Node(5, (), (0,)), Node(9, (0,), (1,)), Node(9, (1,), (2,)), Node(2, (2, 0), (3,))), (4, 6, 6, 1), (3,)
)


def test_a_plan_is_its_finders_until_a_cheaper_one_comes() -> None:
    best = Best(PROBLEM, 100, Limits())
    best.offer([0, 1, 2, 0, 3], "one")
    best.offer([0, 1, 2, 3], "other")
    best.offer([0, 1, 0, 2, 3], "third")
    assert best.fitting is not None
    assert best.fitting.by == best.ledger.found_by == "other"
    assert {part.name: part.won for part in best.ledger.parts()} == {"one": 1, "other": 1}


def test_only_a_higher_bound_is_a_parts() -> None:
    best = Best(PROBLEM, 100, Limits())
    raised = [best.raise_bound(bound, by) for bound, by in ((25, "given"), (25, "one"), (27, "other"))]
    assert raised == [True, False, True]
    assert (best.ledger.bound_by, [part.raised for part in best.ledger.parts()]) == ("other", [1])


def test_what_runs_is_counted_where_it_runs() -> None:
    ledger = Ledger()
    assert ledger.counted("a", lambda: 7)() == 7
    with ledger.at_work("b"):
        sum(range(1000))
    ledger.spent("b", 2.0)
    parts = {part.name: part for part in ledger.parts()}
    assert (parts["a"].tries, parts["b"].tries) == (1, 1)
    assert parts["b"].seconds > 2


def test_searches_within_others_count_for_them() -> None:
    ledger, within = Ledger(), Ledger()
    within.spent("a", 1.5)
    ledger.include(within.parts())
    ledger.include(within.parts())
    assert [part.seconds for part in ledger.parts()] == [3.0]


def test_results_and_progress_say_whose_the_plan_is() -> None:
    heard: list[Progress] = []
    for method in (solve, milp):
        found = method(PROBLEM, 12, Limits(limited(moves=20_000), report=heard.append))
        assert found.order is not None
        assert found.found_by in {part.name for part in found.parts}
        assert {one.by for one in heard if one.order == found.order} == {found.found_by}
        heard.clear()
    assert solve(PROBLEM, 100, Limits()).found_by == GIVEN
