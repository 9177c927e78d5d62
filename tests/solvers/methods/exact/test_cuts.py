"""The relaxation holds for every schedule: any legal order, projected, satisfies every row."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from solvers.clock import Clock
from solvers.methods.exact.cuts import build_cuts, expand_cuts, windows_in_order
from solvers.methods.exact.projection import project
from solvers.methods.exact.replaceable import advance
from solvers.methods.exact.tracing import Tracing
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.simulate import simulate
from tests.solvers.random_problems import random_order, random_problem


def test_every_order_satisfies_every_row_at_no_greater_cost() -> None:
    random = Random(31)
    rows = moved = traced = 0
    for _ in range(600):
        problem = random_problem(random, random.randint(2, 10))
        count = len(problem.nodes)
        order = random_order(random, problem, random.randint(0, 8))
        outcome = simulate(problem, lower(problem, order))
        ended = replace(problem, nodes=(*problem.nodes, Node(0, tuple(sorted(set(problem.outputs))), ())))
        taus = random.sample(range(count), random.randint(0, min(3, count)))
        free = frozenset(random.sample(range(len(problem.sizes)), len(problem.sizes) // 3))
        peaks = {(random.randint(0, len(taus)), random.randrange(count)) for _ in range(random.choice((0, 30)))}
        cuts = build_cuts(ended, outcome.peak, windows_in_order(ended, taus), free, 1.0, peaks)
        rows += sum(map(len, cuts.across))
        moved += tuple(advance(ended, cuts.replaceable, order)) != order
        before = len(cuts.program.rows)
        Tracing(cuts, Clock()).add([random.random() ** 2 for _ in cuts.program.costs])
        traced += len(cuts.program.rows) - before
        solution = project(cuts, order)
        for columns, coefficients, low, high in cuts.program.rows:
            total = sum(c * solution[column] for column, c in zip(columns, coefficients, strict=True))
            assert low <= total <= high, (problem, order, taus)
        again = sum(cost * value for cost, value in zip(cuts.program.costs, solution, strict=True))
        assert again <= outcome.cost - sum(node.cost for node in problem.nodes)
    assert rows > 100, "peaks inside recomputations were hardly looked at"
    assert moved > 10, "passing values were hardly met"
    assert traced > 500, "hardly anything was traced"


def test_an_output_too_small_to_count_may_be_written_in_place() -> None:
    """It runs again after the boundary, which no column says."""
    nodes = (Node(0, (), (0, 1)), Node(1, (0,), (2,), overwrites=((2, 0),)), Node(2, (1, 2), (3,)))
    problem = Problem(nodes, (3, 3, 3, 0), (2,), resident=5)
    order = (0, 1, 2, 0, 1)
    peak = simulate(problem, lower(problem, order)).peak
    ended = replace(problem, nodes=(*nodes, Node(0, (2,), ())))
    cuts = build_cuts(ended, peak, windows_in_order(ended, [1]), frozenset({2}), 1.0)
    solution = project(cuts, order)
    for columns, coefficients, low, high in cuts.program.rows:
        assert low <= sum(c * solution[column] for column, c in zip(columns, coefficients, strict=True)) <= high


@pytest.mark.parametrize("seed", range(5))
def test_an_expansion_is_a_legal_order(seed: int) -> None:
    random = Random(seed)
    problem = random_problem(random, 10, plain=True)
    order = random_order(random, problem, 6)
    ended = replace(problem, nodes=(*problem.nodes, Node(0, tuple(sorted(set(problem.outputs))), ())))
    cuts = build_cuts(ended, 1 << 40, windows_in_order(ended, [3, 6]), frozenset(), 1.0)
    expanded = expand_cuts(cuts, project(cuts, order))
    simulate(problem, lower(problem, expanded))
