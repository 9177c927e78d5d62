"""Plans aimed at a budget by what their code holds, which here is a rule: no compiler runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from remat_cli.torch.aiming import TRIES, Aim, Aimed, aim
from remat_cli.torch.planning import PlannedOrder
from solvers.problem import Status
from solvers.simulate import Outcome

WHOLE, LEAST = 1000, 400  # bytes by the model


def planned(limit: int) -> PlannedOrder:
    """A plan that holds as much as it may, and costs more the less that is."""
    peak = max(LEAST, min(limit, WHOLE))
    before = Outcome(WHOLE, WHOLE, 0, (), ())
    return PlannedOrder((), Outcome(2 * WHOLE - peak, peak, 0, (), ()), before, limit, Status.FEASIBLE)


def aimed(budget: int, told: Callable[[int], int | None]) -> tuple[Aimed | None, list[PlannedOrder]]:
    now: list[PlannedOrder] = []

    def build(found: PlannedOrder):  # type: ignore[no-untyped-def]
        now.append(found)

    way = Aim(planned, build, lambda _: told(now[-1].outcome.peak), lambda _: budget)
    return aim(way, planned(WHOLE)), now


@pytest.mark.parametrize("more", [-200, 0, 300])
def test_code_that_holds_a_constant_more_is_met_at_once(more: int) -> None:
    found, tried = aimed(900 + more, lambda peak: peak + more)
    assert found is not None
    assert found.told.peak == found.told.budget
    assert len(tried) == 2


def test_without_recomputation_where_that_fits() -> None:
    found, tried = aimed(WHOLE + 50, lambda peak: peak + 50)
    assert found is not None
    assert found.found.outcome.peak == WHOLE
    assert len(tried) == 1


def test_the_leanest_tried_where_nothing_fits() -> None:
    found, tried = aimed(300, lambda peak: peak + 100)
    assert found is not None
    assert found.told.over == LEAST + 100 - 300
    assert len(tried) == 2  # the search says that it knows of none that is leaner


def test_nothing_where_no_code_can_be_written() -> None:
    assert aimed(900, lambda _: None)[0] is None


def test_no_plan_tried_is_better() -> None:
    draws = random.Random(0)
    kept = 0
    for _ in range(300):
        table = {}

        def told(peak: int, table: dict[int, int] = table) -> int:
            return table.setdefault(peak, peak + draws.randint(-100, 400))

        budget = draws.randint(500, 1300)
        found, tried = aimed(budget, told)
        assert found is not None
        assert len(tried) <= TRIES + 1
        fitting = [plan.outcome.cost for plan in tried if table[plan.outcome.peak] <= budget]
        if fitting:
            kept += 1
            assert found.told.over == 0
            assert found.found.outcome.cost == min(fitting)
        else:
            assert found.told.peak == min(table[plan.outcome.peak] for plan in tried)
    assert kept > 100
