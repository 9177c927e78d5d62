"""Tidy orders: the same computes, legal by the word of `simulate`, in the model's own order as far as may be."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from remat_cli.onnx_graph.walk import by_rank
from remat_cli.planning.loading import load_subject
from solvers.placement.memory import LaterRuns
from solvers.placement.tidy import tidied
from solvers.plan import lower
from solvers.simulate import simulate
from tests.solvers.viewed_problems import random_order, random_problem


@pytest.mark.parametrize("seed", range(30))
def test_a_tidy_order_is_legal_and_computes_the_same(seed: int) -> None:
    problem = random_problem(seed, 12)
    order = random_order(problem, seed)
    found = tidied(problem, order)
    assert sorted(found) == sorted(order)
    assert simulate(problem, lower(problem, found)).cost == simulate(problem, lower(problem, order)).cost


def test_ops_that_were_moved_about_stand_in_the_models_order_again(data: Path) -> None:
    problem = load_subject(data / "placing" / "mixer.problem.json", None, {}).problem
    own = tuple(range(len(problem.nodes)))
    writer = {value: step for step, node in enumerate(problem.nodes) for value in node.writes}
    random = Random(1)
    moved = by_rank([[writer[v] for v in node.reads] for node in problem.nodes], [random.random() for _ in own])
    memory = LaterRuns(problem, 0)
    assert memory.height(own) < memory.height(moved)
    assert tidied(problem, moved) == own
