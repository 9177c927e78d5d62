"""Which forward graphs are chains, and of which layers: the papers' own are, with a loss that looks at labels."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from solvers.methods.baselines.links import links
from solvers.notes import SolverNote
from solvers.problem import Limits, Status
from solvers.reductions.views import reduced
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule
from tests.ample import ample
from tests.contract.graphs import GRAPHS, chain
from tests.remat_cli.steps import network
from tests.solvers.random_problems import random_problem

SMALL = {"batch": 4, "image": 64}
NETWORKS = [("vgg16", {**SMALL, "hidden": 32}), ("mobilenet-v1", SMALL)]


def test_every_op_of_a_chain_is_a_link() -> None:
    assert links(chain(5)) == [[0], [1], [2], [3], [4]]
    assert links(GRAPHS["uneven chain"]) == [[0], [1], [2], [3], [4]]


@pytest.mark.parametrize("graph", ["residual", "diamond", "u-net", "dense", "transformer"])
def test_what_forks_is_none(graph: str) -> None:
    assert links(GRAPHS[graph]) is None


@pytest.mark.parametrize("name, settings", NETWORKS)
def test_the_papers_networks_are_chains(name: str, settings: dict[str, int], tmp_path: Path) -> None:
    """Down to a budget that a chain's sqrt(n) segments can meet, at no more than a forward pass extra."""
    subject = network(tmp_path, name, **settings)
    found = links(reduced(subject.problem).problem)
    assert found is not None
    forward = sum(node.cost for node in subject.problem.nodes if not node.backward)
    before = baseline(subject.problem)[1]
    reached = []
    for method in ("chen-sqrt", "chen-greedy", "griewank"):
        answer = schedule(subject.problem, before.peak - 1, METHODS[method].load(), Limits(ample()))
        assert answer.outcome is not None
        assert not any(note.kind == SolverNote.ONLY_CHAINS for note in answer.result.notes)
        reached.append(answer.outcome.peak)
        if method != "griewank":
            assert answer.outcome.cost <= before.cost + forward
    assert min(reached) < before.peak
    assert Status.FEASIBLE is answer.result.status


def test_random_problems_do_not_trip_it() -> None:
    for seed in range(200):
        found = links(random_problem(Random(seed), 9))
        ops = [index for link in found or () for index in link]
        assert ops == sorted(ops)


@pytest.mark.parametrize("name", ["resnet18", "unet"])
def test_networks_that_fork_are_none(name: str, tmp_path: Path) -> None:
    assert links(reduced(network(tmp_path, name, batch=1, image=64).problem).problem) is None
