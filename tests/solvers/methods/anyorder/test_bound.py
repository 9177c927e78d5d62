"""No bound above the true optimum over all orders, and none claimed infeasible that is not."""

from __future__ import annotations

from random import Random

import pytest

from solvers.clock import limited
from solvers.methods.anyorder.bound import BoundSearch
from solvers.plan import lower
from solvers.problem import Limits, Node, Problem
from solvers.simulate import simulate
from tests.oracle.exact import least_peak, optimum
from tests.oracle.problems import random_problem


def raised(problem: Problem, budget: int) -> BoundSearch:
    search = BoundSearch(problem, budget)
    while not search.done:
        search.go(Limits(gap=0.0))
    return search


@pytest.mark.slow
def test_the_bound_is_never_above_the_optimum() -> None:
    random = Random(5)
    hard = sum(checked(random) for _ in range(300))
    assert hard > 10, "hardly a bound above what every schedule costs"


def checked(random: Random) -> bool:
    """Whether the bound is above what every schedule costs."""
    problem = random_problem(random, random.randint(3, 7), 9)
    peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
    least = least_peak(problem, any_order=True)
    budget = random.randint(least - 1, max(least, min(peak - 1, least + 2)))
    found = raised(problem, budget)
    best = None if budget < least else optimum(problem, budget, any_order=True)
    assert best is None or not found.infeasible, (problem, budget)
    assert best is None or found.bound <= best, (problem, budget)
    return best is not None and found.bound > sum(node.cost for node in problem.nodes)


def test_a_weight_gradient_may_wait_but_what_it_reads_must_too() -> None:
    """x is read by y and, at the end, by a gradient; held beside y's large work it does not fit, so it runs twice."""
    nodes = (
        Node(5, (), (0,)),
        Node(1, (0,), (1,)),
        Node(1, (1,), (2,), workspace=8),
        Node(1, (2, 0), (3,)),
    )
    problem = Problem(nodes, (4, 1, 1, 1), (3,))
    found = raised(problem, 10)
    assert (found.bound, found.done) == (13, True)


def test_however_its_work_is_divided_a_search_comes_to_the_same_bounds() -> None:
    random, steps, raised_once = Random(3), 0, 0
    for _ in range(5):
        problem = random_problem(random, 14, 9)
        peak = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
        whole, divided = BoundSearch(problem, 3 * peak // 4), BoundSearch(problem, 3 * peak // 4)
        while not whole.done:
            rounds = whole.rounds
            whole.go(Limits(gap=0.0))
            while divided.rounds == rounds and not divided.done:
                divided.go(Limits(gap=0.0, clock=limited(moves=1)))
                steps += 1
            assert (divided.bound, divided.order, divided.done) == (whole.bound, whole.order, whole.done)
        raised_once += whole.bound > sum(node.cost for node in problem.nodes)
    assert steps > 50, "hardly divided"
    assert raised_once, "no bound above what every schedule costs"
