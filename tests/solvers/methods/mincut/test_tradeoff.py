"""The trade-off of bytes and time against every set of values that could be saved."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import pytest

from solvers.methods.mincut.tradeoff import Tradeoff
from solvers.problem import Problem
from tests.solvers.methods.mincut.training_graphs import random_training

Figures = tuple[int, int]


def figures(problem: Problem, saved: frozenset[int]) -> Figures | None:
    """Bytes saved, and the time to make the rest of what the backward pass reads; None if a random op would rerun."""
    writer = {value: node for node in problem.nodes for value in node.writes}
    again: dict[int, None] = {}

    def make(value: int) -> bool:
        node = writer[value]
        if value in saved or node.backward:
            return True
        again.setdefault(value)
        return not node.once and all(make(read) for read in node.reads)

    if not all(make(value) for node in problem.nodes if node.backward for value in node.reads):
        return None
    return sum(problem.sizes[value] for value in saved), sum(writer[value].cost for value in again)


def every(problem: Problem) -> list[Figures]:
    forward = [value for node in problem.nodes if not node.backward for value in node.writes]
    sets = chain.from_iterable(combinations(forward, many) for many in range(len(forward) + 1))
    return [found for one in sets if (found := figures(problem, frozenset(one))) is not None]


@pytest.mark.parametrize("seed", range(40))
def test_the_hull_is_the_lower_hull_of_all_sets(seed: int) -> None:
    problem = random_training(seed, 7)
    points = every(problem)
    found = [figures(problem, saved) for saved in Tradeoff(problem).hull()]
    assert all(point in points for point in found)
    for byte, nanosecond in [(1, 1), (1, 3), (5, 1), (2, 7), (100, 1), (1, 100), (13, 4)]:
        least = min(byte * large + nanosecond * slow for large, slow in points)
        assert min(byte * point[0] + nanosecond * point[1] for point in found if point) == least


def test_large_figures_do_not_overflow() -> None:
    """Bytes and nanoseconds of a large step: their products reach far beyond 64 bits."""
    small = random_training(3, 7)
    nodes = tuple(replace(node, cost=node.cost << 38) for node in small.nodes)
    large = replace(small, nodes=nodes, sizes=tuple(size << 38 for size in small.sizes))
    assert set(Tradeoff(large).hull()) == set(Tradeoff(small).hull())
