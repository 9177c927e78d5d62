"""What functions of C++ are bound to hold, against a count of the values that are alive."""

from __future__ import annotations

import random

import pytest

from remat_cli.torch.joined import joined
from solvers.problem import Node, Problem


def chain(draws: random.Random, length: int) -> Problem:
    """Each op reads one or two of the values before it."""
    nodes = []
    for op in range(length):
        reads = tuple({draws.randrange(op) for _ in range(2)}) if op else ()
        nodes.append(Node(1, reads, (op,), workspace=draws.randint(0, 9)))
    return Problem(tuple(nodes), tuple(draws.randint(1, 40) for _ in range(length)), outputs=(length - 1,), resident=7)


@pytest.mark.parametrize("seed", range(30))
def test_a_function_holds_what_is_alive_when_it_begins_what_it_makes_and_works_in(seed: int) -> None:
    draws = random.Random(seed)
    problem = chain(draws, 12)
    apart = set(draws.sample(range(12), 4))
    order = tuple(range(12))
    last = {value: max((op for op in order if value in problem.nodes[op].reads), default=value) for value in order}
    last[11] = 12
    found = joined(problem, order, apart)
    places = [place for _, run in found.kernels for place in run]
    assert places == [op for op in order if op not in apart]
    for held, run in found.kernels:
        assert not set(range(run[0], run[-1] + 1)) & apart
        assert run[0] == 0 or run[0] - 1 in apart
        alive = [value for value in order if value in run or (value < run[0] and last[value] >= run[0])]
        work = max(problem.nodes[op].workspace for op in run)
        assert held == problem.resident + sum(problem.sizes[value] for value in alive) + work
    assert found.peak == max(held for held, _ in found.kernels)


def test_nothing_is_said_where_nothing_is_known_of_the_code() -> None:
    assert joined(chain(random.Random(0), 5), tuple(range(5)), set()).kernels == ()
