"""Orders to begin afresh with: legal, each by its number alone, and unlike each other."""

from __future__ import annotations

from solvers.annealing.local import LocalSearch
from solvers.methods.auto.origins import Afresh
from solvers.methods.auto.question import SearchQuestion
from solvers.problem import Limits, Problem
from solvers.schedule import baseline, evaluate
from tests.solvers.viewed_problems import random_problem

OPS, BUDGET = 60, 0.6


def begun(problem: Problem) -> Afresh:
    asked = SearchQuestion(problem, round(BUDGET * baseline(problem)[1].peak), Limits())
    return Afresh(asked, LocalSearch(problem, asked.budget, 0))


def test_each_is_legal_and_made_by_its_number_alone() -> None:
    problem = random_problem(0, OPS)
    afresh, again = begun(problem), begun(problem)
    orders = [tuple(afresh.order(number).tolist()) for number in range(6)]
    assert len(set(orders)) > 1
    assert [tuple(again.order(number).tolist()) for number in reversed(range(6))] == orders[::-1]
    for order in orders:
        evaluate(problem, order)
