"""Timelines and breakdowns, held to `simulate`, to plain counting, and to a plan worked out by hand."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from random import Random

import pytest

from remat_cli.formats.planfile import describe
from remat_cli.model.problem_of import Named
from remat_cli.planning.loading import load_subject
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.breakdown import anatomy, at_peak, during
from remat_cli.plans.roles import Role
from remat_cli.plans.timeline import Block, Timeline, timeline
from solvers.plan import IllegalOrder
from solvers.problem import Node, Problem
from solvers.schedule import evaluate
from solvers.simulate import Outcome
from tests.cli.running import Command
from tests.contract.graphs import GRAPHS
from tests.remat_cli.steps import network

PARAMETERS = (16 * 3 * 9 + 16) + 2 * 16 + 32 * 16 * 9 + 2 * 32 + (10 * 2048 + 10)  # of torch_cnn, layer by layer


def legal(problem: Problem, seed: int) -> tuple[Timeline, Outcome]:
    """A random order with repeats that can be run."""
    random, count = Random(seed), len(problem.nodes)
    often = [i for i in range(count) if not problem.nodes[i].once]
    while True:
        order = list(range(count))
        for node in random.choices(often, k=random.randint(0, 2 * count)):
            order.insert(random.randint(node, len(order)), node)
        try:
            plan, outcome = evaluate(problem, order)
        except IllegalOrder:
            continue
        return timeline(problem, plan), outcome


@pytest.mark.parametrize("name", GRAPHS)
def test_every_compute_holds_what_simulate_says(name: str) -> None:
    for seed in range(50):
        line, outcome = legal(GRAPHS[name], seed)
        assert line.memory == outcome.memory
        assert line.peak_step == outcome.peak_step
        assert line.begins[-1] == outcome.cost
        counted = [sum(block.bytes for block in line.held(step)) for step in range(len(line.order))]
        work = [GRAPHS[name].nodes[node].workspace + GRAPHS[name].resident for node in line.order]
        assert tuple(map(sum, zip(counted, work, strict=True))) == outcome.memory


def test_a_block_belongs_to_what_was_written_into_it() -> None:
    """0 makes 10 bytes, 1 looks at them as value 1, 2 writes value 2 over them, 3 makes 5 bytes of that."""
    nodes = (
        Node(7, (), (0,)),
        Node(0, (0,), (1,), views=((1, 0),)),
        Node(2, (1,), (2,), overwrites=((2, 1),)),
        Node(3, (2,), (3,)),
    )
    problem = Problem(nodes, (10, 10, 10, 5), (3,), resident=1)
    line = timeline(problem, evaluate(problem, (0, 1, 2, 3))[0])
    assert line.blocks == (Block(0, 10, 0, 2), Block(2, 10, 2, 4), Block(3, 5, 3, 4))
    assert line.memory == (11, 11, 11, 16)
    assert line.begins == (0, 7, 7, 9, 12)


def test_views_made_again_are_not_computed_again() -> None:
    nodes = (Node(7, (), (0,)), Node(0, (0,), (1,), views=((1, 0),)), Node(2, (1,), (2,)))
    problem = Problem(nodes, (10, 10, 10), (2,))
    line = timeline(problem, evaluate(problem, (0, 1, 0, 1, 2))[0])
    assert line.again == (False, False, True, False, False)


def test_a_bare_problem_tells_phases_apart() -> None:
    nodes = (Node(1, (), (0,)), Node(1, (0,), (1,), backward=True), Node(1, (0, 1), (2,), workspace=4, backward=True))
    problem = Problem(nodes, (10, 3, 5), (2,), resident=20)
    subject = Subject(source=describe(Path(__file__)), named=Named(problem, ("f", "b", "g"), ("a", "d", "w")))
    line, parts = timeline(problem, evaluate(problem, (0, 1, 2))[0]), anatomy(subject)
    assert at_peak(subject, line, parts).as_object() == {
        "at": "g",
        "total": 42,
        "inputs_and_weights": 20,
        "gradients": 5,
        "activations": 10,
        "temporaries": 3,
        "workspace": 4,
    }
    assert during(subject, line, 0, parts).sizes[Role.ACTIVATIONS] == 10


@pytest.mark.parametrize("name", ["ort_gpt2_eager", "ort_mlp", "torch_cnn", "torch_gpt2_eager", "torch_unet_convt"])
def test_parts_add_up_at_every_compute(data: Path, name: str) -> None:
    subject = load_subject(data / f"{name}.onnx", None, {})
    plan, outcome = subject.as_it_is()
    line, parts = timeline(subject.problem, plan), anatomy(subject)
    for step in range(0, len(line.order), 7):
        assert during(subject, line, step, parts).total == outcome.memory[step]


def test_the_command_says_it_too(remat: Command, data: Path, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes((data / "torch_cnn.onnx").read_bytes())
    solved = remat(
        "solve", "m.onnx", "--budget", "80%", "--method", "evict", "--time-limit", "5m", "--json", "-o", "m.plan.json"
    ).object
    shown = remat("show", "m.plan.json", "--json").object
    assert solved["breakdown"] == shown["breakdown"]
    for when, peak in (("before", "baseline_peak"), ("after", "peak")):
        parts = solved["breakdown"][when]
        sizes = [size for name, size in parts.items() if name not in ("at", "total")]
        assert parts["total"] == solved[peak] == sum(sizes)
        assert parts["parameters"] == 4 * PARAMETERS
    assert remat("emit", "m.plan.json", "-q").code == 0
    emitted = remat("show", "m.remat.onnx", "--json").object["breakdown"]["before"]
    for part in ("parameters", "activations", "temporaries", "gradients"):  # what is made again is known as such
        assert emitted[part] == solved["breakdown"]["after"][part]
    text = remat("show", "m.plan.json").out
    assert "parameters" in text
    assert "optimizer state" not in text


def test_a_model_and_a_problem_are_shown_as_they_stand(remat: Command, data: Path) -> None:
    model = remat("show", data / "torch_mlp.onnx", "--json").object
    assert model["peak"] == model["baseline_peak"] == model["breakdown"]["after"]["total"]
    assert model["method"] is model["budget"] is None
    problem = remat("show", data / "networks" / "unet.problem.json").out
    assert "as it stands: 72 ops" in problem
    assert "activations" in problem
    bare = load_subject(data / "networks" / "unet.problem.json", None, {})
    assert remat("show", bare.path, "--statements").out.count("compute ") == len(bare.nodes)


def test_a_problem_without_ops(remat: Command, tmp_path: Path) -> None:
    text = '{"format": "remat-problem/1", "resident": 7, "values": [], "outputs": [], "nodes": []}'
    (tmp_path / "empty.problem.json").write_text(text)
    solved = remat("solve", "empty.problem.json", "--budget", "10", "--json").object
    assert solved["breakdown"]["after"]["total"] == 7
    ran = remat("show", "empty.problem.json")
    assert (ran.code, "no ops" in ran.err) == (3, True)


def test_time_is_the_sum_of_costs() -> None:
    line, _ = legal(GRAPHS["u-net"], 3)
    costs = [GRAPHS["u-net"].nodes[node].cost for node in line.order]
    assert list(line.begins) == [0, *accumulate(costs)]


def test_what_updates_running_statistics_is_of_the_forward_pass(tmp_path: Path) -> None:
    """`grad` writes the forward pass first: all that is of the backward pass stands behind the loss."""
    subject = network(tmp_path, "resnet18", batch=2, image=32, classes=10)
    problem, late = subject.problem, anatomy(subject).late(subject.problem)
    loss = problem.writers()[subject.values.index("loss")]
    flagged = [index for index, node in enumerate(problem.nodes) if node.backward]
    assert min(flagged) < loss < min(late)
    assert len(late) > len(problem.nodes) / 3
