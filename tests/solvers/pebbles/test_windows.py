"""Stretches computed anew, held to the oracle's optimum and to an order that is dearer than it need be."""

from __future__ import annotations

from random import Random

import numpy as np

from solvers._loops import cheapest
from solvers.orders.best import Best
from solvers.orders.halting import halting
from solvers.pebbles.copies import Copies
from solvers.pebbles.windows import Stretches, at_hand
from solvers.problem import Limits, Node, Problem
from tests.oracle.exact import least_peak, optimum
from tests.oracle.problems import random_problem

NOTHING = np.zeros(0, np.int64)


def test_the_whole_order_as_a_stretch_is_never_said_to_cost_more_than_the_optimum() -> None:
    random, met = Random(37), 0
    for _ in range(200):
        problem = random_problem(random, random.randint(2, 7), 8)
        budget = least_peak(problem, any_order=True) + random.choice((0, 0, 2))
        least = optimum(problem, budget, any_order=True)
        assert least is not None
        copies = Copies(problem)
        wanted = np.array(copies.outputs, np.int64)
        with halting(None) as halt:
            bound, cost, _, way = cheapest(copies.tables, wanted, NOTHING, NOTHING, budget, 1 << 60, 100_000, 1, halt)
        assert bound <= least
        found = Best(problem, budget, Limits()).weigh(way) if cost >= 0 else None
        met += found is not None and found.cost == least
    assert met > 10  # most have nodes that no output needs


def test_a_stretch_keeps_what_there_is_room_for() -> None:
    """A chain of which the end reads all that was made, with everything made again for it."""
    nodes = tuple(Node(1, (step - 1,) if step else (), (step,)) for step in range(6))
    problem = Problem((*nodes, Node(1, tuple(range(6)), (6,))), (1,) * 7, (6,))
    best = Best(problem, 7, Limits())
    known = best.weigh([0, 1, 2, 0, 1, 2, 3, 1, 2, 4, 5, 3, 6])
    assert known is not None
    copies = Copies(problem)
    assert Stretches(copies, best, 10_000).improve(known).order.tolist() == list(range(7))


def test_at_hand_is_what_is_read_later() -> None:
    nodes = (Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (0, 1), (2,)))
    copies = Copies(Problem(nodes, (4, 4, 4), (1, 2)))
    order = np.array([0, 1, 0, 2])
    held = [[copies.value[bit] for bit in at_hand(copies, order, place)] for place in range(5)]
    assert held == [[], [0], [1], [0, 1], [1, 2]]
