"""`lower` and `simulate` against each other and against a third, plain reckoning of memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solvers.faults import faults
from solvers.plan import Allocate, Compute, Deallocate, IllegalOrder, Plan, lower
from solvers.problem import RESIDENT, Node, Problem
from solvers.reductions.views import reduced
from solvers.schedule import evaluate
from solvers.simulate import IllegalPlan, simulate
from tests.solvers.viewed_problems import random_order, random_problem

CHAIN = Problem(
    nodes=(Node(1, (), (0,)), Node(2, (0,), (1,)), Node(3, (1,), (2,)), Node(4, (0, 2), (3,))),
    sizes=(10, 10, 10, 5),
    outputs=(3,),
    resident=7,
)


def plain_peak(problem: Problem, order: tuple[int, ...]) -> int:
    """Memory by intervals: a copy lives from its compute to the last read before it is next produced."""
    peak = problem.resident
    for step, index in enumerate(order):
        held = problem.nodes[index].workspace
        for value, size in enumerate(problem.sizes):
            made = [s for s, n in enumerate(order) if value in problem.nodes[n].writes and s <= step]
            if not made:
                continue
            later = [s for s, n in enumerate(order) if value in problem.nodes[n].writes and s > made[-1]]
            until = later[0] if later else len(order)
            used = any(value in problem.nodes[n].reads for n in order[step : until + 1])
            if until < len(order) and value in problem.nodes[order[until]].reads:
                used = True
            if made[-1] == step or used or (value in problem.outputs and not later):
                held += size
        peak = max(peak, problem.resident + held)
    return peak


def test_hand_worked_chain() -> None:
    plan, outcome = evaluate(CHAIN, (0, 1, 2, 3))
    assert (outcome.cost, outcome.peak, outcome.peak_step) == (10, 37, 2)
    assert outcome.peak_values == (0, 1, 2)
    assert outcome.memory == (17, 27, 37, 32)
    assert plan.order() == (0, 1, 2, 3)


def test_computing_again_lets_the_first_copy_go() -> None:
    _, outcome = evaluate(CHAIN, (0, 1, 2, 0, 3))
    assert (outcome.cost, outcome.peak) == (11, 32)


def test_reading_what_was_never_made_is_refused() -> None:
    with pytest.raises(IllegalOrder):
        lower(CHAIN, (1, 0, 2, 3))


@pytest.mark.parametrize("seed", range(150))
def test_plain_problems_agree_with_intervals(seed: int) -> None:
    problem = random_problem(seed, plain=True)
    order = random_order(problem, seed)
    assert evaluate(problem, order)[1].peak == plain_peak(problem, order)


@pytest.mark.parametrize("seed", range(300))
def test_any_order_lowers_to_a_plan_the_simulator_accepts(seed: int) -> None:
    problem = random_problem(seed)
    assert not list(faults(problem))
    order = random_order(problem, seed)
    _, outcome = evaluate(problem, order)
    assert outcome.cost == sum(problem.nodes[index].cost for index in order)
    assert outcome.peak >= problem.resident


@pytest.mark.parametrize("seed", range(300))
def test_contracted_views_come_back_at_the_same_peak(seed: int) -> None:
    problem = random_problem(seed, count=8)
    smaller = reduced(problem)
    order = random_order(smaller.problem, seed)
    _, small = evaluate(smaller.problem, order)
    _, full = evaluate(problem, smaller.expand(order))
    assert full.cost == small.cost + smaller.fixed_cost
    assert full.peak <= small.peak
    viewed = {write for node in problem.nodes for write, _ in node.views}
    if not viewed.intersection(problem.outputs):  # an output's earlier copies are views too: smaller than thought
        assert full.peak == small.peak


def test_an_overwritten_read_costs_nothing_extra() -> None:
    nodes = (Node(1, (), (0,)), Node(1, (0,), (1,), overwrites=((1, 0),)), Node(1, (1,), (2,)))
    problem = Problem(nodes, (8, 8, 1), (2,))
    assert evaluate(problem, (0, 1, 2))[1].peak == 9
    held = replace(problem, nodes=(*nodes[:2], Node(1, (0, 1), (2,))))
    assert evaluate(held, (0, 1, 2))[1].peak == 17


def test_an_output_has_memory_of_its_own() -> None:
    nodes = (Node(1, (), (0,)), Node(0, (0,), (1,), views=((1, 0),)), Node(1, (), (2,), views=((2, RESIDENT),)))
    assert evaluate(Problem(nodes, (8, 8, 8), (2,)), (0, 1, 2))[1].peak == 8
    assert evaluate(Problem(nodes, (8, 8, 8), (1, 2)), (0, 1, 2))[1].peak == 16


def test_unread_copies_stay_where_the_runtime_keeps_them() -> None:
    nodes = (Node(1, (), (0, 1)), Node(1, (0,), (2,)), Node(1, (2,), (3,)))
    problem = Problem(nodes, (1, 50, 4, 4), (3,))
    assert evaluate(problem, (0, 1, 2))[1].memory == (51, 5, 8)
    assert evaluate(replace(problem, unread_stay=True), (0, 1, 2))[1].memory == (51, 55, 58)
    left_out = replace(problem, unread_stay=True, optional=frozenset({1}))
    assert evaluate(left_out, (0, 1, 2))[1].memory == (1, 5, 8)


def test_unread_copies_in_shared_memory_go_with_it() -> None:
    """As measured in ONNX Runtime: only a copy with memory of its own stays when nobody reads it."""
    view = (Node(1, (), (0,)), Node(0, (0,), (1,), views=((1, 0),)), Node(1, (), (2,)))
    over = (Node(1, (), (0,)), Node(1, (0,), (1,), overwrites=((1, 0),)), Node(1, (), (2,)))
    own = (Node(1, (), (0,)), Node(1, (0,), (1,)), Node(1, (), (2,)))
    memory = {
        name: evaluate(Problem(nodes, (8, 8, 4), (2,), unread_stay=True), (0, 1, 2))[1].memory
        for name, nodes in {"view": view, "over": over, "own": own}.items()
    }
    assert memory == {"view": (8, 8, 4), "over": (8, 8, 4), "own": (8, 16, 12)}


ILLEGAL = {
    "reads what is not there": (Allocate(1, 1, 10), Compute(1, (1,))),
    "writes without a place": (Compute(0, (1,)),),
    "a place of the wrong size": (Allocate(0, 1, 9), Compute(0, (1,))),
    "frees twice": (Allocate(0, 1, 10), Compute(0, (1,)), Deallocate(1), Deallocate(1)),
    "frees before it is written": (Allocate(0, 1, 10), Deallocate(1)),
    "allocates twice": (Allocate(0, 1, 10), Allocate(0, 1, 10)),
    "never runs": (Allocate(0, 1, 10), Compute(0, (1,))),
    "shares what may not be shared": (Allocate(0, 1, 10), Compute(0, (1,)), Allocate(1, 2, 0, 1), Compute(1, (2,))),
    "leaves out what is needed": (Compute(0, (None,)),),
}


@pytest.mark.parametrize("statements", ILLEGAL.values(), ids=ILLEGAL)
def test_the_simulator_believes_nothing(statements: tuple[Allocate | Compute | Deallocate, ...]) -> None:
    with pytest.raises(IllegalPlan):
        simulate(CHAIN, Plan(statements))


def test_an_effect_never_happens_twice() -> None:
    once = replace(CHAIN, nodes=(replace(CHAIN.nodes[0], once=True), *CHAIN.nodes[1:]))
    with pytest.raises(IllegalPlan, match="only once"):
        evaluate(once, (0, 1, 2, 0, 3))


def test_the_vocabulary_reads_in_this_order() -> None:
    """Others write it out by place: cost, reads, writes, workspace, once."""
    node = Node(1, (), (0,), 2, True)
    assert (node.workspace, node.once, node.early) == (2, True, ())
