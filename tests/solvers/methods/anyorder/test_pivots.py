"""Pivots lie on one path, and the bound at any that could be chosen is never above the optimum over all orders."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.anyorder.pivots import Choosing, PivotChoice, Pivots
from solvers.methods.anyorder.windows import windows_of
from solvers.orders.bounds import cost_bound, list_needs
from solvers.problem import Limits, Node, Problem
from tests.oracle.exact import least_peak, optimum
from tests.oracle.problems import random_problem


def test_wherever_it_looks_the_bound_is_never_above_the_optimum() -> None:
    """Weights drawn at random, so that any pivots are chosen, alone or several."""
    random = Random(3)
    several = dear = 0
    for _ in range(100):
        problem = random_problem(random, random.randint(3, 7), 9)
        budget = least_peak(problem, any_order=True) + random.randint(0, 2)
        pivots = draw_pivots(problem, random)
        search = BoundSearch(problem, budget)
        search.begun = search.chosen = True
        search.windows = windows_of(search.ended, search.writer, pivots)
        assert search.windows.pivots == pivots
        assert all(search.windows.low[pivot] == search.windows.high[pivot] for pivot in pivots)
        while not search.done:
            search.go(Limits(gap=0.0))
        best = optimum(problem, budget, any_order=True)
        assert best is not None
        assert not search.infeasible, (problem, budget, pivots)
        assert search.bound <= best, (problem, budget, pivots)
        several += len(pivots) > 1
        dear += search.bound > cost_bound(problem)
    assert several > 15
    assert dear > 3


def draw_pivots(problem: Problem, random: Random) -> Pivots:
    choice = PivotChoice(problem, lambda _: 1 + random.random(), 0.0)
    nodes = range(len(problem.nodes))
    return chosen(choice.run((), [1] * len(nodes), list_needs(problem), 0))


def test_a_pivot_beside_the_path_is_chosen_where_it_says_more() -> None:
    """A chain of four, and a node beside its last two: they are on no path with it, so they are not pivots with it."""
    reads = ((), (0,), (1,), (2,), (1,))
    problem = Problem(tuple(Node(1, read, (node,)) for node, read in enumerate(reads)), (1,) * 5, (3, 4))
    assert choose(problem, worth=(1, 1, 1, 1, 9)) == (0, 1, 4)
    assert choose(problem, worth=(1, 1, 3, 7, 1)) == (0, 1, 2, 3)
    assert choose(problem, worth=(0, 0, 0, 0, 9)) == (4,)


def test_pivots_stay_as_given_where_none_may_be_tried() -> None:
    problem = Problem((Node(1, (), (0,)), Node(1, (0,), (1,))), (1, 1), (1,))
    assert chosen(PivotChoice(problem, lambda _: None, 2.0).run((1,), (2, 2), (1, 2), 1)) == (1,)


def choose(problem: Problem, worth: Sequence[int]) -> Pivots:
    """As if each pivot were worth so much by itself."""
    choice = PivotChoice(problem, lambda pivots: sum(worth[pivot] for pivot in pivots), 0.0)
    return chosen(choice.run((), (2,) * len(problem.nodes), (1,) * len(problem.nodes), 1))


def chosen(choosing: Choosing) -> Pivots:
    while True:
        try:
            next(choosing)
        except StopIteration as ended:
            found: Pivots = ended.value
            return found
