"""The arena against a naive best fit, and its bounds."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from solvers.placement.region import ALIGNMENT, fits, least_arena, stuck_at
from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import Node, Problem
from solvers.schedule import baseline
from tests.solvers.random_problems import random_problem


def naive(problem: Problem, plan: Plan, room: int) -> int | None:
    """The same on a bare list of (start, end) that are taken."""
    room = room // ALIGNMENT * ALIGNMENT
    taken: dict[int, tuple[int, int]] = {}
    block: dict[int, int] = {}

    def place(size: int) -> int | None:
        edges = [(0, 0), *sorted(taken.values()), (room, room)]
        gaps = [(b[0] - a[1], a[1]) for a, b in pairwise(edges)]
        good = [gap for gap in gaps if gap[0] >= size]
        return min(good)[1] if good else None

    for index, statement in enumerate(plan.statements):
        match statement:
            case Allocate(_, register, size, shares):
                block[register] = block[shares] if shares is not None else register
                size = -(-size // ALIGNMENT) * ALIGNMENT
                if size:
                    start = place(size)
                    if start is None:
                        return next(place for place in range(index, len(plan.statements)) if _computes(plan, place))
                    taken[register] = (start, start + size)
            case Compute(node):
                work = -(-problem.nodes[node].workspace // ALIGNMENT) * ALIGNMENT
                if work and place(work) is None:
                    return index
            case Deallocate(register):
                owner = block.pop(register)
                if owner not in block.values():
                    taken.pop(owner, None)
    return None


def _computes(plan: Plan, place: int) -> bool:
    return isinstance(plan.statements[place], Compute)


def test_what_is_taken_early_comes_before_results() -> None:
    """Two pieces taken first leave no hole for the result; one piece taken after it needs the end alone."""
    nodes = (
        Node(1, (), (0,)),
        Node(1, (), (1,)),
        Node(1, (0,), (2,)),
        Node(1, (1, 2), (3,), workspace=1024),
    )
    late = Problem(nodes, (768, 256, 256, 768), (1, 2, 3))
    early = replace(late, nodes=(*nodes[:3], replace(nodes[3], early=(512, 512))))
    plan, _ = baseline(late)
    rooms = range(1024, 4096, 256)
    least = [min(room for room in rooms if fits(problem, plan, room)) for problem in (late, early)]
    assert least[0] != least[1]


def scaled(seed: int) -> Problem:
    problem = random_problem(random.Random(seed), 9, plain=True)
    nodes = tuple(Node(n.cost, n.reads, n.writes, n.workspace * 300) for n in problem.nodes)
    return Problem(nodes, tuple(size * 300 for size in problem.sizes), problem.outputs, problem.resident)


@pytest.mark.parametrize("seed", range(30))
def test_against_the_naive_one(seed: int) -> None:
    problem = scaled(seed)
    plan, outcome = baseline(problem)
    live = outcome.peak - problem.resident
    for room in range(live // 2, live * 2 + 2 * ALIGNMENT, max(ALIGNMENT, live // 9)):
        assert stuck_at(problem, plan, room) == naive(problem, plan, room)
    least = least_arena(problem, plan, outcome.peak)
    assert least >= outcome.peak
    assert fits(problem, plan, least - problem.resident)
