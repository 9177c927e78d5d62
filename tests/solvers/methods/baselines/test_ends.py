"""The far ends that the papers compare with, and the class in which each method says it is optimal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from remat_cli.formats.problemfile import read
from remat_cli.notes.words import sentence
from solvers.methods.baselines.checkpoint_layers import layer_ends
from solvers.problem import Kind, Limits, Node, Problem
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule
from tests.ample import ample
from tests.remat_cli.steps import network

DATA = Path(__file__).parents[3] / "data" / "checkmate"
TINY = {"layers": 4, "hidden": 64, "heads": 2, "batch": 2, "vocabulary": 100, "seq": 64}


def limits() -> Limits:
    return Limits(ample())


@pytest.mark.parametrize("name, settings", [("vgg16", {"batch": 2, "image": 32, "hidden": 32}), ("gpt2", TINY)])
def test_a_full_checkpoint_runs_the_forward_pass_twice_and_no_more(
    name: str, settings: dict[str, int], tmp_path: Path
) -> None:
    problem = network(tmp_path, name, **settings).problem
    before = baseline(problem)[1]
    found = schedule(problem, before.peak, METHODS["full-checkpoint"].load(), limits())
    assert found.result.order is not None
    assert found.outcome is not None
    assert max(Counter(found.result.order).values()) == 2
    forward = sum(node.cost for node in problem.nodes if not node.backward)
    assert before.cost + 0.5 * forward < found.outcome.cost <= before.cost + forward


def test_a_checkpoint_a_layer_takes_less_memory_for_at_most_a_forward_pass(tmp_path: Path) -> None:
    problem = network(tmp_path, "gpt2", **TINY).problem
    before = baseline(problem)[1]
    found = schedule(problem, before.peak, METHODS["checkpoint-layers"].load(), limits())
    assert found.outcome is not None
    forward = sum(node.cost for node in problem.nodes if not node.backward)
    assert before.cost < found.outcome.cost <= before.cost + forward
    assert found.outcome.peak < before.peak
    assert len(layer_ends(reduced(problem).problem)) >= 2 * TINY["layers"]


def test_a_layer_ends_before_the_next_product() -> None:
    kinds = [Kind.COMPUTE, Kind.POINTWISE, Kind.OPAQUE, Kind.COMPUTE, Kind.POINTWISE, Kind.COMPUTE]
    nodes = [Node(1, (i - 1,) if i else (), (i,), kind=kind) for i, kind in enumerate(kinds)]
    back = [Node(1, (5 - i, *((5 + i,) if i else ())), (6 + i,), backward=True) for i in range(6)]
    assert layer_ends(Problem((*nodes, *back), (1,) * 12, (11,))) == {2, 4}


@pytest.mark.parametrize(
    "method, cost, words",
    [
        ("rotor", 28, "keep what they keep until its backward"),
        ("rotor+", 28, "over the ways found"),
        ("revolve", 28, "keep inputs of stages only"),
        ("griewank", 26, "links cost and need the same"),
        ("milp", 26, "every schedule that first computes the ops in the order given"),
    ],
)
def test_each_names_the_class_in_which_it_is_optimal(method: str, cost: int, words: str) -> None:
    """On the unit chain of 8 layers with room for 4 values."""
    problem = read(DATA / "linear8.problem.json").problem
    found = schedule(problem, 4, METHODS[method].load(), limits())
    assert found.outcome is not None
    assert found.outcome.cost == cost
    assert any(words in sentence(note) for note in found.result.notes)
