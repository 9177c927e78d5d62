"""Plans aimed at a budget by what their code holds, which here is a rule: no compiler runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from remat_cli.torch.aiming import TRIES, Aim, Aimed, aim, learn
from remat_cli.torch.generated import HeldByCode
from remat_cli.torch.planning import PlannedOrder
from remat_cli.torch.written import More, Written
from solvers.problem import Status
from solvers.simulate import Outcome

WHOLE, LEAST = 1000, 400  # bytes by the model


def judged(peak: int, more: More, limit: int = 0) -> PlannedOrder:
    """The plan of this peak by the model, which costs more the leaner it is: op 0 is all plans' own and may hold
    more."""
    held = peak + more.get(0, 0)
    outcome = Outcome(2 * WHOLE - peak, held, 0, (), (held, 0))
    return PlannedOrder((0, peak), outcome, Outcome(WHOLE, WHOLE, 0, (), ()), limit, Status.FEASIBLE)


def searched(limit: int, more: More) -> PlannedOrder:
    """The cheapest that fits, or the leanest, as far as is known."""
    plans = [judged(peak, more, limit) for peak in range(LEAST, WHOLE + 1, 10)]
    return min(plans, key=lambda plan: (max(0, plan.outcome.peak - limit), plan.outcome.cost))


def aimed(
    budget: int,
    told: Callable[[int], int | None],
    written: Written | None = None,
    search: Callable[[int, More], PlannedOrder] = searched,
) -> tuple[Aimed | None, list[PlannedOrder]]:
    now: list[PlannedOrder] = []

    def build(found: PlannedOrder):  # type: ignore[no-untyped-def]
        now.append(found)

    def look(_: object, ready: bool) -> HeldByCode | None:
        assert ready or now[-1].order[1] == WHOLE
        held = told(now[-1].order[1])
        return None if held is None else HeldByCode(held, ((held, (0,)),))

    way = Aim(
        search=search,
        alike=lambda order, _: order,
        judge=lambda order, more: judged(order[1], more),
        build=build,
        look=look,
        as_written=lambda whole: whole,
        allowed=lambda _: budget,
    )
    return aim(way, judged(WHOLE, {}), Written() if written is None else written), now


@pytest.mark.parametrize("more", [0, 300])
def test_code_that_holds_a_constant_more_is_met_at_once(more: int) -> None:
    found, tried = aimed(900 + more, lambda peak: peak + more)
    assert found is not None
    assert found.told.peak == found.told.budget
    assert len(tried) == 2


def test_a_model_that_says_too_much_without_recomputation_means_nothing_for_other_plans() -> None:
    found, tried = aimed(700, lambda peak: peak - (200 if peak == WHOLE else 0))
    assert found is not None
    assert [plan.order[1] for plan in tried] == [WHOLE, 700]


def test_without_recomputation_where_that_fits() -> None:
    found, tried = aimed(WHOLE + 50, lambda peak: peak + 50)
    assert found is not None
    assert found.found.order == (0, WHOLE)
    assert len(tried) == 1


def test_the_leanest_tried_where_nothing_fits() -> None:
    found, tried = aimed(300, lambda peak: peak + 100)
    assert found is not None
    assert found.told.over == LEAST + 100 - 300
    assert len(tried) == 2  # the search says that it knows of none that is leaner, and there is no other


def test_a_budget_that_is_missed_is_met_by_a_plan_that_aims_below_it() -> None:
    found, tried = aimed(900, lambda peak: peak + (100 if peak > 800 else 160))
    assert found is not None
    assert [plan.order[1] for plan in tried] == [WHOLE, 800, 710]
    assert found.told.peak == 870  # 960 was 60 too much, of which half is the margin


def test_less_budget_that_is_asked_later_never_holds_more() -> None:
    """The code of the leanest plan by the model holds more than that of a plan with more room."""

    def told(peak: int) -> int:
        return peak + (900 - peak if peak < 600 else 50)

    written, held = Written(), {}
    for budget in (800, 500, 300):
        found = aimed(budget, told, written)[0]
        assert found is not None
        held[budget] = found.told.peak
    assert held[300] <= held[500] <= held[800] <= 800


@pytest.mark.parametrize("seed", range(40))
def test_a_smaller_budget_never_holds_more_in_whatever_order_budgets_are_asked(seed: int) -> None:
    """What code holds beyond the model is drawn for each plan: no model foretells it."""
    draws, table, written = random.Random(seed), dict[int, int](), Written()

    def told(peak: int) -> int:
        return table.setdefault(peak, peak + draws.randint(-100, 400))

    held: list[tuple[int, int]] = []
    for budget in (draws.randint(300, 1200) for _ in range(20)):
        found = aimed(budget, told, written)[0]
        assert found is not None
        held.append((budget, found.told.peak))
    assert all(own <= other for budget, own in held for larger, other in held if budget < larger)
    assert any(own <= budget for budget, own in held)


def test_no_plan_is_looked_at_after_one_that_the_model_foretells_to_be_over() -> None:
    def search(limit: int, more: More) -> PlannedOrder:
        return searched(limit, more) if more else judged(LEAST - 10, more, limit)

    _, tried = aimed(550, lambda peak: peak + 300, search=search)
    assert [plan.fits for plan in tried[1:]] == [False]
    assert tried[-1].order[1] == LEAST


def test_a_budget_below_one_that_no_plan_kept_is_not_searched_again() -> None:
    written = Written()
    first = aimed(450, lambda peak: peak + 100, written)[1]
    again = aimed(350, lambda peak: peak + 100, written)[1]
    assert written.answers == {450: LEAST + 100, 350: LEAST + 100}
    assert [plan.order[1] for plan in first] == [WHOLE, LEAST]
    assert [plan.order[1] for plan in again] == [LEAST]  # the one that is used, anew


def test_a_plan_for_another_budget_is_judged_by_code_that_is_looked_at_anew() -> None:
    written = Written({(0, 500): 300, (0, 600): 400}, answers={350: 300})
    found = aimed(350, lambda peak: peak + 100, written)[0]
    assert found is not None
    assert found.told.peak == LEAST + 100  # 500 was said to hold 300, which is not so any more
    assert written.peaks[0, 500] == 600


@pytest.mark.parametrize("seed", range(20))
def test_what_was_learnt_of_a_plan_makes_the_model_say_what_its_code_holds(seed: int) -> None:
    draws = random.Random(seed)
    order = tuple(draws.sample(range(9), 6))
    memory = tuple(draws.randint(1, 50) for _ in order)
    cuts = [0, *sorted(draws.sample(range(1, 6), 2)), 6]
    kernels = tuple((draws.randint(1, 90), tuple(range(*pair))) for pair in pairwise(cuts))
    more: More = {}
    found = replace(judged(WHOLE, {}), order=order, outcome=Outcome(0, max(memory), 0, (), memory))
    learn(more, found, HeldByCode(0, kernels))
    for held, places in kernels:
        now = [memory[place] + more.get(order[place], 0) for place in places]
        assert max(now) == max(held, *(memory[place] for place in places))
    assert all(extra > 0 for extra in more.values())


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
        assert len(tried) <= 1 + TRIES + 1  # without recomputation, and the leanest
        fitting = [plan.outcome.cost for plan in tried if table[plan.order[1]] <= budget]
        if fitting:
            kept += 1
            assert found.told.over == 0
            assert found.found.outcome.cost == min(fitting)
        else:
            assert found.told.peak == min(table[plan.order[1]] for plan in tried)
    assert kept > 100
