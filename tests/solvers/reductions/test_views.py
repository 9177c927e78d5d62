"""Contracted views: orders with any repeats come back legal, at no higher a peak."""

from __future__ import annotations

from random import Random

from solvers.reductions.views import without_views
from tests.oracle.problems import random_order, random_problem
from tests.oracle.replay import peak_of, replay


def test_any_order_of_the_smaller_problem_comes_back_legal_at_the_same_peak() -> None:
    for seed in range(600):
        random = Random(seed)
        problem = random_problem(random, random.randint(3, 40))
        smaller = without_views(problem)
        order = random_order(random, smaller.problem, random.randint(0, 12))
        assert replay(problem, smaller.expand(order)) is not None, (seed, order)
        assert peak_of(problem, smaller.expand(order)) == peak_of(smaller.problem, order), (seed, order)
