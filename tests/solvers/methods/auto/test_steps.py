"""Large graphs of which every op reads several others: goes come to an order that fits where walks lead nowhere."""

from __future__ import annotations

from random import Random

import pytest

from solvers.clock import Clock
from solvers.methods.auto.steps import Steps
from solvers.orders.evict import RULES, Evictor
from solvers.problem import Limits, Node, Problem
from solvers.schedule import baseline, evaluate

WIDE, OPS = 20, 6000  # an order that long is not spread anew at once where gaps are used up


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


def begun(problem: Problem, share: float) -> Steps:
    steps = Steps(problem, round(share * baseline(problem)[1].peak), Limits(Clock(1e9)))
    steps.best.offer(steps.given, "test")
    steps.anneal([steps.nearest], steps.moves // 10, "test")
    steps.approach_at_once()
    return steps


@pytest.mark.slow
def test_goes_come_to_an_order_that_fits_where_no_walk_does(layered: Problem) -> None:
    steps = begun(layered, 0.92)
    evictor = Evictor(layered, steps.limits.clock)
    assert not any(len(evictor.run(steps.budget, rule, 0)) for rule in RULES[:4])
    assert steps.best.fitting is not None
    outcome = evaluate(layered, steps.best.fitting.steps())[1]
    assert outcome.peak <= steps.budget
    assert outcome.cost < 1.1 * sum(node.cost for node in layered.nodes)


def test_they_end_where_the_next_comes_little_nearer(layered: Problem) -> None:
    steps = begun(layered, 0.5)
    assert steps.best.fitting is None
    assert 2 <= steps.goes <= 6
