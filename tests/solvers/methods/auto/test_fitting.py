"""The operator that has orders made to fit: which are tried, which are left, and what the search knows of it."""

from __future__ import annotations

from collections.abc import Generator
from random import Random

import numpy as np
import pytest

from solvers.clock import Clock, limited
from solvers.methods.auto.auto import Auto
from solvers.methods.auto.fitting import Fitting
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.bounds import peak_bound
from solvers.plan import lower
from solvers.problem import Limits, Problem
from solvers.simulate import simulate
from solvers.stopping import LEAST_WORK
from tests.solvers.random_problems import random_order
from tests.solvers.training_chain import training_chain

LARGE = 1 << 40
STEPS, WORK = 3, 100  # that it takes to make an order fit, and moves of each


class Place:
    """Where orders run: those of so many bytes fit, and others of the same computes do not."""

    def __init__(self, problem: Problem, room: int, known: bool = False) -> None:
        self.problem, self.room = problem, room
        self.known = known  # at once that an order fits
        self.begun: list[int] = []  # costs
        self.fitting: list[int] = []

    def fit(self, order: tuple[int, ...], clock: Clock) -> Generator[bool, None, tuple[int, ...] | None]:
        outcome = simulate(self.problem, lower(self.problem, order))
        self.begun.append(outcome.cost)
        for _ in range(STEPS):
            clock.spend(moves=WORK)
            yield self.known
        if outcome.peak > self.room:
            return None
        self.fitting.append(outcome.cost)
        return order


@pytest.fixture
def problem() -> Problem:
    return training_chain(Random(43))


@pytest.fixture
def place(problem: Problem) -> Place:
    return Place(problem, peak_bound(problem).peak * 3 // 2)


@pytest.fixture
def asked(problem: Problem, place: Place) -> SearchQuestion:
    return SearchQuestion(problem, place.room, Limits(limited(moves=1 << 40), fit=place.fit))


def step(operator: Fitting, asked: SearchQuestion) -> int:
    """One step, as the scheduler does it; its work."""
    limits = asked.aside()
    offers = operator.begin()(limits)
    operator.end([asked.pool.offer(*offer) for offer in offers])
    return limits.clock.work.spent


def plans(problem: Problem, budget: int) -> list[tuple[int, ...]]:
    """Plans that get cheaper, each by a little."""
    found: list[tuple[int, ...]] = []
    limits = Limits(limited(moves=400_000), report=lambda one: found.append(one.order) if one.order else None)
    Auto(problem, budget, limits).run(())
    assert len(found) > 2
    return found


def test_an_order_is_made_to_fit_in_steps_once(problem: Problem, place: Place, asked: SearchQuestion) -> None:
    operator = Fitting(asked)
    assert not operator.ready()  # there is no order
    asked.pool.offer(np.array(plans(problem, place.room)[0], np.int64), "test")
    first = operator.share
    taken = 0
    while operator.ready():
        assert asked.fitting is None
        taken += step(operator, asked)
    assert taken == STEPS * WORK
    assert place.begun == place.fitting == [asked.fitting] == [asked.best.cost]
    assert operator.share < first


def test_what_was_tried_in_vain_is_tried_again_when_the_search_has_gone_on_for_long(problem: Problem) -> None:
    place = Place(problem, 0)  # where nothing fits
    asked = SearchQuestion(problem, LARGE, Limits(limited(moves=1 << 40), fit=place.fit))
    operator = Fitting(asked)
    asked.pool.offer(np.array(asked.given, np.int64), "test")
    for tries in (1, 2, 3):
        assert operator.ready()
        while operator.ready():
            step(operator, asked)
        assert place.begun == [asked.once] * tries
        before = operator.clock.most
        assert before is not None
        asked.limits.clock.spend(moves=2 * before - asked.limits.clock.work.spent)


@pytest.mark.parametrize(("cheaper", "known", "left"), [(0.9, False, False), (0.4, False, True), (0.4, True, False)])
def test_an_order_is_left_for_a_far_cheaper_one_alone_and_while_it_is_not_known_to_fit(
    problem: Problem, cheaper: float, known: bool, left: bool
) -> None:
    place = Place(problem, LARGE, known)
    asked = SearchQuestion(problem, LARGE, Limits(limited(moves=1 << 40), fit=place.fit))
    operator, random = Fitting(asked), Random(7)
    orders = {one.cost: one for _ in range(300) if (one := asked.best.weigh(random_order(random, problem, 40)))}
    dear = max(orders)
    cheap = max(cost for cost in orders if cost - asked.once <= cheaper * (dear - asked.once))
    for cost in (dear, cheap):
        asked.pool.offer(orders[cost].order, "test")
        step(operator, asked)
    assert place.begun == ([dear, cheap] if left else [dear])
    while operator.ready():
        step(operator, asked)
    assert place.fitting == ([cheap] if left else [dear, cheap])


def test_the_search_has_its_orders_made_to_fit_and_work_alone_decides(problem: Problem, place: Place) -> None:
    found = []
    for _ in range(2):
        here = Place(problem, place.room - 1)  # the best orders of the search may not fit
        result = Auto(problem, place.room, Limits(limited(moves=300_000), fit=here.fit)).run(())
        found.append((result.order, here.begun, here.fitting))
        assert here.begun
        assert here.begun == sorted(here.begun, reverse=True)
        assert "fitting" in [part.name for part in result.parts]
    assert found[0] == found[1]


def test_without_a_place_nothing_is_made_to_fit(problem: Problem, place: Place) -> None:
    result = Auto(problem, place.room, Limits(limited(moves=300_000))).run(())
    assert "fitting" not in [part.name for part in result.parts]


def test_patience_is_with_the_order_that_fits_where_it_is_to_run(problem: Problem) -> None:
    """A search is not over because of an order near the bound, where what fits is far from it."""
    work = LEAST_WORK * 2
    for place, over in ((Place(problem, LARGE), True), (Place(problem, 0), False)):
        asked = SearchQuestion(problem, LARGE, Limits(limited(moves=1 << 40), gap=0.01, fit=place.fit))
        operator = Fitting(asked)
        asked.pool.offer(random_order(Random(7), problem, 3), "test")
        assert asked.best.cost is not None
        asked.raise_floor(asked.best.cost / 1.05, "test")  # within ten times the gap, though not within it
        step(operator, asked)
        while operator.going:
            step(operator, asked)
        asked.limits.clock.spend(moves=work)
        assert asked.done() is over
