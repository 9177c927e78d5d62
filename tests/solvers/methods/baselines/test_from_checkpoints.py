"""The cheapest R for a given S, against all subsets of each row."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest

from solvers.methods.baselines.from_checkpoints import cheapest_order
from solvers.problem import Problem
from solvers.schedule import evaluate
from tests.solvers.random_problems import random_problem


def possible(problem: Problem, seed: int) -> np.ndarray:
    """A random S that asks for nothing before it can have been computed."""
    random = Random(seed)
    writer = problem.writers()
    kept = np.zeros((len(problem.nodes), len(problem.sizes)), dtype=bool)
    for stage in range(len(problem.nodes)):
        for value, source in enumerate(writer):
            kept[stage, value] = source < stage and (random.random() < 0.5 or value in problem.outputs)
    return kept


def cheapest_row(problem: Problem, kept: np.ndarray, stage: int) -> int:
    """The least cost of a set of ops that (1b) and (1c) allow as a row of R, by trying all."""
    writer, best = problem.writers(), None
    for count in range(stage + 1):
        for others in combinations(range(stage), count):
            runs = {*others, stage}
            held = [value for value in range(len(problem.sizes)) if kept[stage, value]]
            there = {*held, *(value for op in runs for value in problem.nodes[op].writes)}
            correct = all(value in there for op in runs for value in problem.nodes[op].reads)
            following = stage + 1 < len(problem.nodes)
            goes_on = not following or all(
                value in there for value in range(len(writer)) if kept[stage + 1, value] and writer[value] <= stage
            )
            if correct and goes_on:
                cost = sum(problem.nodes[op].cost for op in runs)
                best = cost if best is None else min(best, cost)
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(40))
def test_no_row_can_be_cheaper(seed: int) -> None:
    problem = random_problem(Random(seed), 7, plain=True)
    kept = possible(problem, seed)
    order = cheapest_order(problem, kept)
    cost = sum(problem.nodes[op].cost for op in order)
    assert cost == sum(cheapest_row(problem, kept, stage) for stage in range(len(problem.nodes)))
    evaluate(problem, order)


@pytest.mark.parametrize("seed", range(60))
def test_any_retention_gives_a_legal_order(seed: int) -> None:
    problem = random_problem(Random(seed), 9)
    kept = np.random.default_rng(seed).random((len(problem.nodes), len(problem.sizes))) < 0.5
    order = cheapest_order(problem, kept)
    evaluate(problem, order)
    firsts = list(dict.fromkeys(order))
    assert firsts == list(range(len(problem.nodes)))
