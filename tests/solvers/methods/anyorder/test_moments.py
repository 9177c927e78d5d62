"""Moments: none takes more than the least peak, no bound with them is above the optimum, and one says what ops alone
do not."""

from __future__ import annotations

from random import Random

import pytest

from solvers.clock import Clock
from solvers.methods.anyorder import moments
from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.anyorder.moments import list_moments, with_moments
from solvers.methods.anyorder.windows import windows_of
from solvers.plan import lower
from solvers.problem import Limits, Node, Problem
from solvers.simulate import simulate
from tests.oracle.exact import least_peak, optimum
from tests.oracle.problems import random_problem
from tests.solvers.random_problems import random_order

MANY = 200


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moments of every node, with all values in their sets."""
    monkeypatch.setattr(moments, "_WIDE", 0.0)
    monkeypatch.setattr(moments, "SMALL", 0.0)


def drawn(random: Random) -> tuple[Problem, int, int]:
    """A problem, its least peak, and a budget near that."""
    problem = random_problem(random, random.randint(3, 7), 9)
    least = least_peak(problem, any_order=True)
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    return problem, least, random.randint(least, max(least, min(peak - 1, least + 2)))


def test_no_moment_takes_more_than_the_least_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    random, found = Random(3), 0
    for _ in range(MANY):
        problem, least, _ = drawn(random)
        monkeypatch.setattr(moments, "_STATES", random.choice((1, 5, 50)))
        for moment in list_moments(problem, least, Clock()):
            found += 1
            assert moment.taken <= least, (problem, moment)
    assert found > MANY / 2


@pytest.mark.slow
def test_no_bound_with_moments_is_above_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(4)
    hard = 0
    for _ in range(MANY):
        problem, _, budget = drawn(random)
        monkeypatch.setattr(moments, "_STATES", random.choice((1, 5, 50)))
        search = BoundSearch(problem, budget)
        search.begin(Clock())
        put_in = [index for index, origin in enumerate(search.moments.origin) if origin < 0]
        if put_in:
            search.windows = windows_of(search.ended, search.writer, [random.choice(put_in)])
            search.peaks = {index for index in put_in if not search.windows.is_sure(index)}
        for _ in range(4):
            if not search.done:
                search.go(Limits(gap=0.0))
        best = optimum(problem, budget, any_order=True)
        assert best is not None
        assert not search.infeasible, (problem, budget)
        assert search.bound <= best, (problem, budget)
        hard += bool(put_in) and search.bound > sum(node.cost for node in problem.nodes)
    assert hard > MANY / 50


def test_an_order_has_each_moment_before_its_node_and_loses_it_again() -> None:
    random = Random(5)
    for _ in range(MANY):
        problem, least, _ = drawn(random)
        wider = with_moments(problem, least, Clock())
        order = random_order(random, problem, 3)
        longer = wider.put_in(order)
        assert wider.without(longer) == list(order)
        assert len(longer) - len(order) == len(wider.beside)
        made = set[int]()
        for index in longer:
            assert made.issuperset(wider.problem.nodes[index].reads)
            made.update(wider.problem.nodes[index].writes)


def test_what_is_made_beside_a_gradient_leaves_no_room_for_others() -> None:
    """A product reads two large values, each made from one as large. Beside the first the second takes 12 of 13 bytes
    while it is made, so that a value of 2 bytes that is read before and after is made twice; the product itself leaves
    room for it."""
    nodes = (
        Node(7, (), (0,)),
        Node(7, (0,), (1,)),
        Node(1, (0, 1), (2,)),
        Node(1, (0, 1), (3,)),
        Node(1, (2,), (4,)),
        Node(1, (3,), (5,)),
        Node(1, (4, 5), (6,)),
        Node(1, (6, 0, 1), (7,)),
    )
    problem = Problem(nodes, (1, 2, 4, 4, 4, 4, 1, 1), (7,))
    search = BoundSearch(problem, 13)
    while not search.done:
        search.go(Limits(gap=0.0))
    assert search.bound == optimum(problem, 13, any_order=True) == 27
