"""The search through all schedules of a small problem, against the oracle."""

from __future__ import annotations

from random import Random

import pytest

from solvers.clock import Clock
from solvers.methods.exact.small import Small
from solvers.orders.best import Best, any_order, in_order
from solvers.problem import Limits
from tests.oracle.exact import optimum
from tests.oracle.promises import small_case
from tests.sampling import few


@pytest.mark.parametrize("ordered", few([False, True], 1))
def test_its_bound_holds_and_its_schedule_is_cheapest_where_all_memory_is_owned(ordered: bool) -> None:
    plain = 0
    for seed in range(120):
        case = small_case(Random(f"small {seed}"), 60)
        best = Best(case.problem, case.budget, Limits(), in_order if ordered else any_order)
        small = Small(case.problem, case.budget, best, Clock(), ordered)
        small.run()
        cheapest = optimum(case.problem, case.budget, any_order=not ordered)
        assert not (small.infeasible and cheapest is not None), seed
        assert cheapest is None or small.bound <= cheapest, seed
        if any(node.views or node.overwrites for node in case.problem.nodes) or case.problem.unread_stay:
            continue
        plain += 1
        assert small.infeasible == (cheapest is None), seed
        assert best.cost == cheapest, seed
    assert plain > 10
