"""Goes of annealing: large graphs are searched cooler."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers.annealing import local
from solvers.annealing.local import LocalSearch
from solvers.clock import Clock
from solvers.orders.arrays import arrays_of
from solvers.orders.evict import RULES, Evictor
from solvers.orders.measure import measure
from solvers.problem import Problem
from solvers.schedule import baseline
from tests.contract.graphs import training_step

MOVES = 20_000
GOES = 2


def chain(length: int) -> Problem:
    random = Random(0)
    reads = [[place - 1] if place else [] for place in range(length)]
    return training_step(reads, random.choices((1, 2, 3, 5), k=length), random.choices((1, 2, 4, 9), k=length))


def gained(problem: Problem, seed: int) -> int:
    """By how much a few short goes make a walk's order for half of the memory cheaper."""
    budget, arrays = baseline(problem)[1].peak // 2, arrays_of(problem)
    order = Evictor(problem).run(budget, RULES[0], 0)
    before, _ = measure(arrays, order)
    search = LocalSearch(problem, budget, seed)
    found = [measure(arrays, search.go(order, number, MOVES, Clock(1e9)).order) for number in range(GOES)]
    return before - min((cost for cost, peak in found if peak <= budget), default=before)


def test_a_walk_gets_cheaper_because_goes_begin_at_about_the_cost_of_an_op(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chain(1_000)
    usual = np.array([gained(problem, seed) for seed in range(3)])
    monkeypatch.setattr(local, "TEMPERATURES", tuple(50 * times for times in local.TEMPERATURES))
    hotter = np.array([gained(problem, seed) for seed in range(3)])
    assert usual.sum() > 0 >= hotter.sum()
