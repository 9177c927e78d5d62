"""Annealing of a pool: it comes to orders that fit where no walk does, learns which settings gain, and ends."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from solvers.clock import limited
from solvers.methods.auto.annealing import Annealing, Setting, promising
from solvers.methods.auto.question import SearchQuestion
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor
from solvers.problem import Limits, Node, Problem
from solvers.schedule import baseline, evaluate
from tests.solvers.training_chain import training_chain

WIDE, OPS = 20, 6000


@pytest.fixture(scope="module")
def layered() -> Problem:
    """Layers of ops; each reads three values, mostly of the layer before, some from far back."""
    random, nodes = Random(0), list[Node]()
    for index in range(OPS):
        near = range(max(0, index - index % WIDE - WIDE), index - index % WIDE)
        reads = {
            random.choice(near) if random.random() < 0.9 else random.randrange(near.stop) for _ in range(3) if near
        }
        nodes.append(Node(random.randint(1, 100), tuple(sorted(reads)), (index,)))
    read = {value for node in nodes for value in node.reads}
    outputs = tuple(value for value in range(OPS) if value not in read)
    return Problem(tuple(nodes), tuple(random.randint(1, 100) for _ in nodes), outputs)


def begun(problem: Problem, budget: int, moves: int = 1 << 40) -> tuple[SearchQuestion, Annealing]:
    asked = SearchQuestion(problem, budget, Limits(limited(moves=moves)))
    asked.pool.offer(np.array(asked.given, np.int64), "test")
    return asked, Annealing(asked)


def go_on(asked: SearchQuestion, annealing: Annealing, lots: int) -> None:
    for _ in range(lots):
        if annealing.ready() and not asked.done():
            annealing.lot()


@pytest.mark.slow
def test_it_comes_to_an_order_that_fits_where_no_walk_does(layered: Problem) -> None:
    asked, annealing = begun(layered, round(0.92 * baseline(layered)[1].peak))
    evictor = Evictor(layered)
    assert not any(len(evictor.run(asked.budget, rule, 0)) for rule in RULES[:4])
    while asked.best.fitting is None and annealing.ready():
        go_on(asked, annealing, 1)
    assert asked.best.fitting is not None
    outcome = evaluate(layered, asked.best.fitting.steps())[1]
    assert outcome.peak <= asked.budget
    assert outcome.cost < 1.1 * sum(node.cost for node in layered.nodes)


def test_it_finds_what_fits_where_the_start_does_not_and_the_same_again() -> None:
    random = Random(43)
    for _ in range(4):
        problem = training_chain(random)
        budget = peak_bound(problem).peak * 3 // 2
        found = []
        for _ in range(2):
            asked, annealing = begun(problem, budget)
            go_on(asked, annealing, 6)
            assert asked.best.fitting is not None
            assert evaluate(problem, asked.best.fitting.steps())[1].peak <= budget
            found.append([entry.steps.tolist() for entry in asked.pool.entries])
        assert found[0] == found[1]


def test_goes_become_longer_where_nothing_is_found_and_end() -> None:
    problem = training_chain(Random(43))
    asked, annealing = begun(problem, peak_bound(problem).peak * 3 // 2)
    lengths = []
    while annealing.ready():
        lengths.append(annealing.length)
        go_on(asked, annealing, 1)
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1] == annealing.length
    asked.pool.offer(asked.pool.entries[-1].steps, "test")
    assert not annealing.ready()  # what is no better changes nothing


def test_lots_beside_others_take_no_more_work_than_they_are_given() -> None:
    problem = training_chain(Random(43))
    asked, annealing = begun(problem, peak_bound(problem).peak * 5 // 4)
    while annealing.work < 16 * asked.moves:
        annealing.lengthen(2 * annealing.length)
    for given in (annealing.work * 2, annealing.work, annealing.work - 1, annealing.work // 5):
        before = asked.limits.clock.work.spent
        assert annealing.shortest <= given
        taken = annealing.lot(given)
        assert given / 2 < taken <= given or taken == annealing.work
        assert asked.limits.clock.work.spent == before + taken


def test_the_setting_that_gains_most_for_its_work_is_promising() -> None:
    dear, cheap, idle = Setting(1.0), Setting(2.0), Setting(3.0)
    dear.gains.learn(0.2, 4.0)
    cheap.gains.learn(0.1, 1.0)
    assert promising([dear, cheap, idle]) is cheap
    for _ in range(20):
        cheap.gains.learn(0.0, 1.0)
    assert promising([dear, cheap, idle]) is dear
