"""The pool: what lacks and costs least comes first, nothing twice, few of one origin, and only what can run."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers.methods.auto.pool import MOST, OF_ONE_ORIGIN, OrderPool
from solvers.orders.best import Best
from solvers.orders.measure import ILLEGAL, memory_of
from solvers.problem import Limits, Problem
from tests.solvers.training_chain import LAYERS, training_chain

GIVEN = np.arange(2 * LAYERS)


@pytest.fixture
def problem() -> Problem:
    return training_chain(Random(43))


def pool_of(problem: Problem, budget: int) -> OrderPool:
    return OrderPool(Best(problem, budget, Limits()))


def again(place: int) -> np.ndarray:
    """The order given, with one compute of the forward once more before it is read last."""
    return np.insert(GIVEN, 2 * LAYERS - 1 - place, place)


def test_what_lacks_least_comes_first_and_then_what_costs_least(problem: Problem) -> None:
    best = Best(problem, 0, Limits())
    peak = int(memory_of(best.arrays, GIVEN).max())
    pool = pool_of(problem, peak - 1)
    for place in range(1, 9):
        pool.offer(again(place), "test")
    worths = [entry.worth for entry in pool.entries]
    assert worths == sorted(worths)
    assert pool.worth == worths[0]
    for entry in pool.entries:
        assert entry.lack == np.maximum(memory_of(best.arrays, entry.steps) - (peak - 1), 0).sum()


def test_nothing_stands_twice_and_little_of_one_origin(problem: Problem) -> None:
    pool = pool_of(problem, 1 << 40)
    for _ in range(2):
        for place in range(1, 2 * OF_ONE_ORIGIN):
            pool.offer(again(place), "test", 7)
    assert len(pool.entries) == OF_ONE_ORIGIN
    assert len({entry.worth for entry in pool.entries}) == OF_ONE_ORIGIN


def test_it_holds_no_more_than_its_most(problem: Problem) -> None:
    pool = pool_of(problem, 1 << 40)
    random = Random(1)
    for _ in range(4 * MOST):
        pool.offer(np.insert(GIVEN, 2 * LAYERS - 1, [random.randrange(LAYERS)] * random.randint(1, 9)), "test")
        pool.offer(again(random.randrange(1, LAYERS)), "test")
    assert 1 < len(pool.entries) <= MOST
    assert pool.best.fitting is not None
    assert pool.worth == (0, pool.best.fitting.cost)


def test_what_cannot_run_is_not_taken(problem: Problem) -> None:
    pool = pool_of(problem, 1 << 40)
    assert pool.offer(GIVEN[::-1].copy(), "test") is None
    assert not pool.entries
    assert ILLEGAL < 0
