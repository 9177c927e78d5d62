"""What fits is one notion: the height and the packed places agree, on random orders."""

from __future__ import annotations

import random

import pytest

from solvers.clock import Clock
from solvers.coroutines import run
from solvers.placement.fitting import fitted, moved_about
from solvers.placement.memory import LaterRuns, MemoryModel, PlannedBlock
from solvers.placement.packing import pack
from solvers.placement.walking import walked
from solvers.plan import lower
from solvers.problem import Node, Problem
from solvers.simulate import simulate
from tests.solvers.placement.witness import held_later, requests
from tests.solvers.random_problems import random_order, random_problem

MODELS = pytest.mark.parametrize("model", [PlannedBlock, LaterRuns])


def scaled(seed: int) -> Problem:
    problem = random_problem(random.Random(seed), 9, plain=True)
    nodes = tuple(Node(n.cost, n.reads, n.writes, n.workspace * 300) for n in problem.nodes)
    return Problem(nodes, tuple(size * 300 for size in problem.sizes), problem.outputs, problem.resident)


def witnessed(memory: MemoryModel, order: tuple[int, ...]) -> int:
    """The bytes that the order needs, by what lays out the block of a plan."""
    plan = lower(memory.problem, order)
    if isinstance(memory, LaterRuns):
        return held_later(requests(memory.problem, plan))
    return pack(requests(memory.problem, plan).lifetimes).block


@MODELS
@pytest.mark.parametrize("seed", range(20))
def test_what_lacks_nothing_has_places_in_the_room(model: type[MemoryModel], seed: int) -> None:
    problem = scaled(seed)
    order = random_order(random.Random(seed), problem, 4)
    need = witnessed(model(problem, 0), order)
    for room in (need - 1, need, 2 * need):
        memory = model(problem, room)
        lacking = memory.lacking(order, Clock(), effort=3)
        assert (lacking == 0) == (need <= room)
        assert lacking <= need


@MODELS
@pytest.mark.parametrize("find", [moved_about, fitted])
def test_what_was_made_to_fit_does(model: type[MemoryModel], find: object) -> None:
    made = 0
    for seed in range(12):
        problem = scaled(seed)
        order = random_order(random.Random(seed), problem, 4)
        memory = model(problem, int(0.97 * witnessed(model(problem, 0), order)))
        found = run(find(memory, order, seed, Clock()))  # type: ignore[operator]
        if found is not None:
            assert witnessed(memory, found) <= memory.room
            made += 1
    assert made > 2


@MODELS
def test_a_walk_that_answers_fits(model: type[MemoryModel]) -> None:
    made = 0
    for seed in range(12):
        problem = scaled(seed)
        live = simulate(problem, lower(problem, range(len(problem.nodes)))).peak
        memory = model(problem, 2 * (live - problem.resident))
        found = walked(memory, live, seed, Clock())
        if found is not None:
            assert witnessed(memory, found) <= memory.room
            made += 1
    assert made > 2
