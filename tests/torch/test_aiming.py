"""Plans aimed at a budget by what their code holds, which here is a rule: no compiler runs."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from remat_cli.torch.aiming import TRIES, Aim, Aimed, aim
from remat_cli.torch.planning import PlannedOrder
from remat_cli.torch.written import Written
from solvers.problem import Status
from solvers.simulate import Outcome

WHOLE, LEAST = 1000, 400  # bytes by the model


def planned(limit: int) -> PlannedOrder:
    """A plan that holds as much as it may, and costs more the less that is."""
    peak = max(LEAST, min(limit, WHOLE))
    before = Outcome(WHOLE, WHOLE, 0, (), ())
    return PlannedOrder((peak,), Outcome(2 * WHOLE - peak, peak, 0, (), ()), before, limit, Status.FEASIBLE)


def aimed(
    budget: int, told: Callable[[int], int | None], written: Written | None = None, lean: tuple[int, ...] = ()
) -> tuple[Aimed | None, list[PlannedOrder]]:
    now: list[PlannedOrder] = []

    def build(found: PlannedOrder):  # type: ignore[no-untyped-def]
        now.append(found)

    way = Aim(
        search=planned,
        leaner=lambda: [planned(peak) for peak in lean],
        judge=lambda order: planned(order[0]),
        build=build,
        tell=lambda _: told(now[-1].outcome.peak),
        as_written=lambda whole: whole,
        allowed=lambda _: budget,
    )
    return aim(way, planned(WHOLE), Written() if written is None else written), now


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
    assert len(tried) == 2  # the search says that it knows of none that is leaner, and there is no other


@pytest.mark.parametrize("budgets", [(800, 500, 300), (300, 500, 800)])
def test_less_budget_never_holds_more_in_whichever_order_budgets_are_asked(budgets: tuple[int, ...]) -> None:
    """The code of the leanest plan by the model holds more than that of a plan with more room."""

    def told(peak: int) -> int:
        return peak + (900 - peak if peak < 600 else 50)

    written, held = Written(), {}
    for budget in budgets:
        found = aimed(budget, told, written, lean=(LEAST, 450, 600, 700))[0]
        assert found is not None
        held[budget] = found.told.peak
    assert held[300] == held[500] == told(600)
    assert held[300] <= held[800] <= 800


def test_the_plans_for_no_budget_are_tried_once() -> None:
    written = Written()
    first = aimed(300, lambda peak: peak + 100, written, lean=(LEAST, 600))[1]
    again = aimed(350, lambda peak: peak + 100, written, lean=(LEAST, 600))[1]
    assert [plan.outcome.peak for plan in first] == [WHOLE, LEAST, 600]
    assert [plan.outcome.peak for plan in again] == [LEAST]  # the one that is used, anew


def test_the_plans_for_no_budget_are_tried_until_one_keeps_to_this_one() -> None:
    told = {WHOLE: WHOLE, 560: 900, LEAST: 900, 500: 550, 700: 900}
    written = Written()
    found, tried = aimed(560, told.__getitem__, written, lean=(LEAST, 500, 700))
    assert found is not None
    assert found.told.peak == 550
    assert [plan.outcome.peak for plan in tried] == [WHOLE, 560, LEAST, 500]
    assert not written.lean  # a smaller budget has the others written


def test_a_plan_for_another_budget_is_judged_by_code_that_is_written_anew() -> None:
    written = Written({(500,): 300, (600,): 400}, lean=True)
    found = aimed(350, lambda peak: peak + 100, written)[0]
    assert found is not None
    assert found.told.peak == LEAST + 100  # 500 was said to hold 300, which is not so any more
    assert written.peaks[500,] == 600


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
