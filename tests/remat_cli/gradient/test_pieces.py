"""Gradients of values that are read piece by piece: joined where the pieces lie apart, and right where they do not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options, training_graph

ROWS = np.random.default_rng(2).standard_normal((6, 3)).astype(np.float32)


def sliced(*pieces: tuple[int, int]) -> onnx.ModelProto:
    """w[6, 3] read between rows, each piece squared, times its place from 1, added up."""
    nodes, stored = [], [numpy_helper.from_array(ROWS, "w"), numpy_helper.from_array(np.array([0]), "axis")]
    for index, (start, end) in enumerate(pieces):
        stored += [numpy_helper.from_array(np.array([v]), f"{n}{index}") for n, v in (("from", start), ("to", end))]
        stored.append(numpy_helper.from_array(np.float32(index + 1), f"times{index}"))
        nodes.append(helper.make_node("Slice", ["w", f"from{index}", f"to{index}", "axis"], [f"p{index}"]))
        nodes.append(helper.make_node("Mul", [f"p{index}", f"p{index}"], [f"q{index}"]))
        nodes.append(helper.make_node("ReduceSum", [f"q{index}"], [f"s{index}"], keepdims=0))
        nodes.append(helper.make_node("Mul", [f"s{index}", f"times{index}"], [f"t{index}"]))
    return finished([*nodes, helper.make_node("Sum", [f"t{index}" for index in range(len(pieces))], ["loss"])], stored)


def finished(nodes: list[onnx.NodeProto], stored: list[onnx.TensorProto]) -> onnx.ModelProto:
    loss = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "pieces", [], [loss], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def gradient(model: onnx.ModelProto) -> tuple[np.ndarray, Counter[str]]:
    training = training_graph(model, Options(loss="loss", choice=Choice(wrt=["w"])))
    session = onnxruntime.InferenceSession(training.SerializeToString(), providers=["CPUExecutionProvider"])
    back = Counter(node.op_type for node in training.graph.node if "/grad/" in node.name)
    return session.run(["w_grad"], {"w": ROWS})[0], back


@pytest.mark.parametrize(
    "pieces, joins",
    [
        ([(0, 2), (2, 6)], 1),
        ([(4, 6), (0, 1), (1, 2)], 1),  # a gap, out of order
        ([(-1, 100), (1, 2), (2, 3)], 1),  # from the end, beyond it, nothing at the start
        ([(0, 3), (2, 6)], 0),  # overlapping
        ([(0, 6), (2, 3)], 0),  # one is all of it
    ],
)
def test_pieces_are_joined_where_they_lie_apart(pieces: list[tuple[int, int]], joins: int) -> None:
    found, back = gradient(sliced(*pieces))
    expected = np.zeros_like(ROWS)
    for index, (start, end) in enumerate(pieces):
        expected[start:end] += 2 * (index + 1) * ROWS[start:end]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert back["Concat"] == joins
    assert not joins or not back["Pad"]


def test_a_loop_over_a_sequence_adds_nothing_up() -> None:
    """Rows picked one by one, each read by the next step."""
    stored = [numpy_helper.from_array(ROWS, "w"), numpy_helper.from_array(np.zeros(3, np.float32), "s")]
    nodes = []
    for t in range(5):  # the last row is not read
        stored.append(numpy_helper.from_array(np.array(t - 6 if t == 3 else t), f"t{t}"))
        nodes.append(helper.make_node("Gather", ["w", f"t{t}"], [f"x{t}"], axis=0))
        nodes.append(helper.make_node("Mul", [f"h{t - 1}" if t else "s", f"x{t}"], [f"m{t}"]))
        nodes.append(helper.make_node("Add", [f"m{t}", f"x{t}"], [f"h{t}"]))
    model = finished([*nodes, helper.make_node("ReduceSum", ["h4"], ["loss"], keepdims=0)], stored)
    found, back = gradient(model)
    expected, by_state = np.zeros_like(ROWS), np.ones(3, np.float32)
    states = [np.zeros(3, np.float32)]
    for row in ROWS[:5]:
        states.append(states[-1] * row + row)
    for t in reversed(range(5)):
        expected[t] = by_state * (states[t] + 1)
        by_state = by_state * ROWS[t]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert back["Concat"] == 1
    assert not back["Pad"]
    assert back["Add"] <= 5
