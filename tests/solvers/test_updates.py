"""Updates of inputs in their place: what is refused, what is held back, and what no plan may do."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from solvers.clock import limited
from solvers.faults import faults
from solvers.plan import Allocate, Compute, Deallocate, Plan, lower
from solvers.problem import RESIDENT, Limits, Node, Problem
from solvers.reductions.kernels import with_whole_kernels
from solvers.registry import METHODS
from solvers.schedule import evaluate, schedule
from solvers.simulate import IllegalPlan, simulate
from solvers.updates import following_readers, in_time
from tests.oracle.problems import hasty_order, random_problem
from tests.oracle.promises import large_case, small_case, updating, wrong_figures, wrong_proofs
from tests.oracle.replay import replay

WEIGHT = ((0, 8),)
NODES = (
    Node(5, (), (0,), takes=WEIGHT),  # the layer
    Node(1, (0,), (1,)),  # its loss
    Node(5, (1,), (2,)),  # the weight's gradient
    Node(1, (2,), (3,), once=True, takes=WEIGHT, updates=((3, 0),)),
    Node(3, (0, 1), (4,)),
)
STEP = Problem(NODES, (6, 1, 8, 0, 2), (3, 4), resident=8)
HASTY = (0, 1, 2, 3, 0, 4)  # computes the layer again once its weight is another


def test_an_update_takes_no_memory_of_its_own() -> None:
    assert not list(faults(STEP))
    assert evaluate(STEP, range(5))[1].memory == (14, 15, 23, 23, 17)


def test_an_update_waits_for_a_repeat_that_reads_the_old_value() -> None:
    assert in_time(STEP, HASTY) == (0, 1, 2, 0, 3, 4)
    assert lower(STEP, HASTY).order() == (0, 1, 2, 0, 3, 4)


def test_what_reads_an_update_that_waits_waits_too() -> None:
    nodes = (*NODES[:4], Node(1, (3,), (4,)), replace(NODES[4], writes=(5,)))
    problem = replace(STEP, nodes=nodes, sizes=(6, 1, 8, 0, 1, 2), outputs=(3, 4, 5))
    assert in_time(problem, (0, 1, 2, 3, 4, 0, 5)) == (0, 1, 2, 0, 3, 4, 5)


def test_a_plan_that_reads_an_input_after_its_update_is_illegal() -> None:
    statements: list[Allocate | Compute | Deallocate] = []
    for register, index in enumerate(HASTY):
        value = NODES[index].writes[0]
        statements += [Allocate(value, register, STEP.sizes[value]), Compute(index, (register,))]
    with pytest.raises(IllegalPlan, match="statement 9: input 0 is read, in whose place another value was written"):
        simulate(STEP, Plan(tuple(statements)))


def test_a_view_of_an_input_is_read_before_its_update() -> None:
    view = Node(0, (), (0,), takes=WEIGHT, views=((0, RESIDENT),))
    nodes = (view, Node(1, (), (1,), once=True, updates=((1, 0),)), Node(1, (0,), (2,)))
    late = Problem(nodes, (8, 0, 1), (1, 2), resident=8)
    assert list(faults(late)) == ["node 2 reads an input as it was, and node 1, which updates it, stands before it"]
    sound = replace(late, nodes=(nodes[0], nodes[2], nodes[1]))
    assert not list(faults(sound))
    assert in_time(sound, (0, 2, 1, 1)) == (0, 1, 1, 2)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (replace(NODES[3], once=False), "may run more than once"),
        (replace(NODES[3], updates=((2, 0),)), "which it does not write"),
        (replace(NODES[3], updates=((3, 0), (3, 0))), "which is updated already"),
    ],
)
def test_updates_that_cannot_be(node: Node, said: str) -> None:
    assert any(said in words for words in faults(replace(STEP, nodes=(*NODES[:3], node, NODES[4]))))


def test_an_update_has_no_bytes_and_is_an_output() -> None:
    assert any("no bytes of its own" in words for words in faults(replace(STEP, sizes=(6, 1, 8, 8, 2))))
    assert any("is no output" in words for words in faults(replace(STEP, outputs=(4,))))


def test_first_computes_can_be_said_by_reads_alone() -> None:
    said = following_readers(STEP)
    assert not list(faults(said))
    assert said.nodes[3].reads == (2, 5)
    assert said.nodes[0].writes == (0, 5)
    assert evaluate(said, range(5))[1].memory == evaluate(STEP, range(5))[1].memory


def test_no_update_is_held_back_for_nothing() -> None:
    """Of all hasty orders, each becomes legal, and a legal one stays as it is."""
    changed = 0
    for seed in range(400):
        random = Random(seed)
        problem = random_problem(random, random.randint(3, 16))
        order = hasty_order(random, problem, random.randint(0, 8))
        mended = in_time(problem, order)
        assert sorted(mended) == sorted(order)
        assert replay(problem, mended) is not None
        assert (mended == order) == (replay(problem, order) is not None)
        changed += mended != order
    assert changed > 10


def test_whole_kernels_keep_updates_behind_readers() -> None:
    """A kernel stands where its last op stood: that may be behind an update of what its first op reads."""
    nodes = (
        Node(1, (), (0,), takes=WEIGHT),
        Node(1, (), (1,), once=True, updates=((1, 0),)),
        Node(1, (0,), (2,)),
    )
    problem = Problem(nodes, (1, 0, 1), (1, 2), resident=8, inner=frozenset({0}))
    whole = with_whole_kernels(problem)
    assert not list(faults(whole.problem))
    assert whole.expand((0, 1)) == (0, 2, 1)
    for seed in (7490, 13560, 15850):  # that brute force found
        case = updating(large_case)(Random(f"2026 {seed} large"), 0.05)
        assert not list(faults(with_whole_kernels(case.problem).problem))


def test_of_several_bases_the_first_says_whether_a_value_lies_in_an_input() -> None:
    """A value of no bytes that brute force made: a view of another value, and after that of an input."""
    nodes = (
        Node(1, (), (0,), takes=WEIGHT),
        Node(1, (0,), (1,), views=((1, 0), (1, RESIDENT)), takes=WEIGHT),
        Node(1, (), (2,), once=True, updates=((2, 0),)),
        Node(1, (1,), (3,)),
    )
    problem = Problem(nodes, (1, 0, 0, 1), (1, 2, 3), resident=8)
    assert problem.waits() == {2: {0, 1}}
    assert replay(problem, range(4)) is not None
    assert evaluate(problem, range(4))[1].cost == 4


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_updates_behind_readers(method: str) -> None:
    limits = Limits(limited(20.0, 20_000))
    for seed in range(12):
        problem = random_problem(Random(f"updates {seed}"), 12)
        if not any(node.updates for node in problem.nodes):
            continue
        full = evaluate(problem, range(12))[1].peak
        found = schedule(problem, round(0.8 * full), METHODS[method].load(), limits)
        if found.plan is not None:
            assert replay(problem, found.plan.order()) is not None


def test_small_problems_with_updates_against_the_oracle() -> None:
    """A sample of what `python -m tests.oracle 2026 20000 0.05 --updates` looks at."""
    for seed in range(60):
        case = updating(small_case)(Random(f"sample {seed}"), 20.0)
        found = case.solved()
        assert not [*wrong_figures(case, found), *wrong_proofs(case, found)], seed
