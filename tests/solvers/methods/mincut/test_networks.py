"""The minimum cut on training steps that `zoo` and `grad` make: no product is computed again, no byte more is moved."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options
from remat_cli.model import sessions
from remat_cli.planning.subjects.subject import Subject
from solvers.methods.mincut.cut import cut
from solvers.methods.mincut.cuts import paper_cut
from solvers.methods.mincut.joint import DEFAULT
from solvers.methods.mincut.min_cut import solve
from solvers.methods.mincut.traffic import traffic_of
from solvers.methods.mincut.training import joint_of
from solvers.problem import Kind, Limits
from solvers.reductions.views import reduced
from solvers.schedule import schedule
from tests.remat_cli.steps import network, step
from tests.solvers.methods.mincut.test_paper import PAPER, by_networkx

TINY = {"layers": 2, "hidden": 64, "heads": 2, "batch": 2, "vocabulary": 100}
NETWORKS = [
    ("vgg16", {"batch": 1, "image": 32, "hidden": 32}),
    ("unet", {"batch": 1, "image": 32, "width": 8}),
    ("gpt2", {**TINY, "seq": 32}),
    ("resnet18", {"batch": 2, "image": 64}),
    ("bert-base", {**TINY, "seq": 32}),
]


def cut_order(subject: Subject) -> tuple[int, ...]:
    order = schedule(subject.problem, 1 << 50, partial(solve, options=PAPER), Limits()).result.order
    assert order is not None
    return order


@pytest.mark.parametrize("name, settings", NETWORKS)
def test_no_product_runs_again_and_no_more_is_moved(name: str, settings: dict[str, int], tmp_path: Path) -> None:
    subject = network(tmp_path, name, **settings)
    problem, order = subject.problem, cut_order(subject)
    again = [index for index, times in Counter(order).items() if times > 1]
    assert not [subject.nodes[index] for index in again if problem.nodes[index].kind is Kind.COMPUTE]
    before = traffic_of(problem, range(len(problem.nodes)))
    assert traffic_of(problem, order).total <= before.total
    joint, _ = joint_of(reduced(problem).problem)
    assert cut(joint, DEFAULT).value == by_networkx(joint)


def test_f1_through_grad(tmp_path: Path) -> None:
    """A sum of f1 has no result to write and no gradient to read: 7 accesses, where all inputs read again makes 9."""
    names = ("a", "b", "c", "d")
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in names]
    loss = helper.make_tensor_value_info("total", TensorProto.FLOAT, [])
    nodes = [
        helper.make_node("Add", ["a", "b"], ["ab"]),
        helper.make_node("Add", ["ab", "c"], ["abc"]),
        helper.make_node("Add", ["abc", "d"], ["x"]),
        helper.make_node("Cos", ["x"], ["once"]),
        helper.make_node("Cos", ["once"], ["twice"]),
        helper.make_node("ReduceSum", ["twice"], ["total"], keepdims=0),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "f1", tensors, [loss]), opset_imports=[helper.make_opsetid("", 20)]
    )
    subject = step(tmp_path, model, Options(loss="total", choice=Choice(wrt=names)))
    order = cut_order(subject)
    size = 4 * 64 * 64
    assert round(traffic_of(subject.problem, order).total / size, 2) == 7
    sums = [index for index, name in enumerate(subject.values) if name in ("ab", "abc", "x")]
    assert all(order.count(subject.problem.writers()[value]) == 1 for value in sums)


@pytest.mark.parametrize("linear", [False, True])
def test_conv_relu_add_saves_the_mask(linear: bool, tmp_path: Path) -> None:
    """What follows the relu needs nothing of it, so that where it was positive is all that is kept.

    A linear loss's gradient is a constant: the mask is then the first of backward to look at the forward pass, and
    still needs no gradient. (Default sessions fold that constant away, and nothing tells it from any other there.)
    """
    shapes = {"input": [1, 3, 16, 16], "w": [8, 3, 3, 3], "shift": [8, 16, 16]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    loss = helper.make_tensor_value_info("total", TensorProto.FLOAT, [])
    nodes = [
        helper.make_node("Conv", ["input", "w"], ["conv"], pads=[1] * 4),
        helper.make_node("Relu", ["conv"], ["relu"]),
        helper.make_node("Add", ["relu", "shift"], ["sum"]),
        helper.make_node("Mul", ["sum", "sum"], ["square"]),
        helper.make_node("ReduceSum", ["sum" if linear else "square"], ["total"], keepdims=0),
    ]
    if linear:
        del nodes[3]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, [loss]), opset_imports=[helper.make_opsetid("", 20)]
    )
    kind = sessions.STRICT if linear else sessions.DEFAULT
    smaller = reduced(
        step(tmp_path, model, Options(loss="total", choice=Choice(wrt=("w", "shift"))), kind).problem
    ).problem
    saved = sorted(smaller.sizes[value] for value in paper_cut(smaller))
    assert saved == [8 * 16 * 16] + ([] if linear else [4 * 8 * 16 * 16])
