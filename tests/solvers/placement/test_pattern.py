"""The block of later runs: on paper, compiled, and in the loop of a search for orders."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from solvers._loops import above
from solvers.annealing.cooling import Kept
from solvers.clock import Clock
from solvers.coroutines import run
from solvers.orders.arrays import arrays_of
from solvers.placement.arranging import arrange_in_pattern
from solvers.placement.lives import Lives
from solvers.placement.memory import LaterRuns
from solvers.placement.pattern import block_of, outputs_apart
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.schedule import evaluate
from tests.solvers.placement.witness import held_later, requests
from tests.solvers.random_problems import random_order, random_problem


def freeing(seed: int) -> Problem:
    """A problem whose results go when nobody reads them any more, as in rewritten models."""
    problem = random_problem(random.Random(seed), 9, plain=True)
    nodes = tuple(Node(n.cost, n.reads, n.writes, n.workspace * 300) for n in problem.nodes)
    return Problem(nodes, tuple(size * 300 for size in problem.sizes), problem.outputs, problem.resident)


def test_the_smallest_gap_is_taken_else_the_room_above() -> None:
    lives = Lives.of([(0, 9, 512), (1, 3, 512), (2, 9, 256), (3, 5, 256), (4, 9, 256), (5, 9, 300)])
    assert block_of(lives.only(np.arange(3))) == 1280
    assert block_of(lives.only(np.arange(5))) == 1280  # two quarters where the half was
    assert block_of(lives) == 1792  # 512 for 300, and only a quarter is free
    assert block_of(Lives.of([(0, 1, 256), (1, 2, 256), (1, 3, 0)])) == 256  # what ends goes before what begins


@pytest.mark.parametrize("seed", range(30))
def test_a_block_is_no_less_than_what_is_live(seed: int) -> None:
    draw = random.Random(seed)
    lives = [(start, start + draw.randint(1, 9), 256 * draw.randint(0, 9)) for start in range(40)]
    asked = Lives.of(lives)
    assert asked.most_at_once() <= block_of(asked) <= sum(size for *_, size in lives)
    pairs = combinations([life for life in lives if life[2]], 2)
    if all(one[1] <= other[0] or other[1] <= one[0] for one, other in pairs):
        assert block_of(asked) == asked.most_at_once()


@pytest.mark.parametrize("seed", range(60))
def test_the_compiled_block_is_the_one_on_paper(seed: int) -> None:
    problem = freeing(seed)
    order = random_order(random.Random(seed), problem, 4)
    held = held_later(requests(problem, lower(problem, order)))
    assert LaterRuns(problem, 0).height(order) == held
    for room in (held - 1, held, held // 2, 2 * held):
        assert (above(arrays_of(problem), np.array(order, np.int64), room) == 0) == (held <= room)


def test_orders_are_arranged_until_later_runs_keep_to_the_room() -> None:
    kept = 0
    for seed in range(40):
        problem = freeing(seed)
        order = random_order(random.Random(seed), problem, 4)
        room = int(0.95 * held_later(requests(problem, lower(problem, order))))
        found = run(arrange_in_pattern(problem, order, room, seed, Clock()))
        if found is not None:
            plan, _ = evaluate(problem, found)
            assert held_later(requests(problem, plan)) <= room
            kept += 1
    assert kept > 20


def test_where_ops_are_only_moved_nothing_more_is_repeated() -> None:
    moved = 0
    for seed in range(40):
        problem = freeing(seed)
        order = random_order(random.Random(seed), problem, 4)
        room = int(0.97 * held_later(requests(problem, lower(problem, order))))
        found = run(arrange_in_pattern(problem, order, room, seed, Clock(), Kept.REPEATS))
        if found is not None:
            assert Counter(found) <= Counter(order)
            moved += 1
    assert moved > 5


def test_outputs_are_counted_from_the_beginning() -> None:
    problem = freeing(3)
    apart = outputs_apart(problem)
    total = sum(problem.sizes[value] for value in set(problem.outputs))
    assert apart.resident == problem.resident + total
    assert all(apart.sizes[value] == 0 for value in problem.outputs)
