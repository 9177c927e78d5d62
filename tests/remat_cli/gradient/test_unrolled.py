"""Loops that end after a number of rounds that is known: differentiated as what they come to; others are refused."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options, training_graph

W = np.random.default_rng(4).standard_normal(3).astype(np.float32)
X = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)


def looped(rounds: int | None, last: int | None) -> onnx.ModelProto:
    """h = tanh(w * h + x[i]), so many rounds or until i is `last`, or till the sum of h says so; all h are squared."""
    scalar, row = (lambda name, kind: helper.make_tensor_value_info(name, kind, [])), [3]
    flag, number = TensorProto.BOOL, TensorProto.INT64
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["xi"]),
        helper.make_node("Mul", ["w", "before"], ["wh"]),
        helper.make_node("Add", ["wh", "xi"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h"]),
        helper.make_node("Identity", ["h"], ["kept"]),
    ]
    if last is not None:
        nodes.append(helper.make_node("Less", ["i", "last"], ["on"]))
    elif rounds is None:
        nodes += [helper.make_node("ReduceSum", ["h"], ["total"], keepdims=0)]
        nodes += [helper.make_node("Less", ["total", "much"], ["on"])]
    else:
        nodes.append(helper.make_node("Identity", ["go"], ["on"]))
    state = helper.make_tensor_value_info("before", TensorProto.FLOAT, row)
    outputs = [
        scalar("on", flag),
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, row) for name in ("h", "kept")),
    ]
    body = helper.make_graph(nodes, "body", [scalar("i", number), scalar("go", flag), state], outputs)
    stored = {"w": W, "x": X, "h0": np.zeros(3, np.float32), "true": np.array(True), "much": np.float32(9)}
    stored |= {"rounds": np.array(rounds or 0), "last": np.array(last or 0)}
    outer = [
        helper.make_node("Loop", ["rounds" if rounds else "", "true", "h0"], ["end", "all"], body=body, name="loop"),
        helper.make_node("Mul", ["all", "all"], ["squares"]),
        helper.make_node("ReduceSum", ["squares"], ["first"], keepdims=0),
        helper.make_node("ReduceSum", ["end"], ["second"], keepdims=0),
        helper.make_node("Add", ["first", "second"], ["loss"]),
    ]
    graph = helper.make_graph(
        outer,
        "looped",
        [],
        [scalar("loss", TensorProto.FLOAT)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def loss(w: np.ndarray, rounds: int) -> float:
    h, total = np.zeros(3), 0.0
    for t in range(rounds):
        h = np.tanh(w * h + X[t])
        total += float((h * h).sum())
    return total + float(h.sum())


@pytest.mark.parametrize("rounds, last", [(4, None), (3, None), (None, 2), (4, 1)])
def test_known_rounds_are_written_out(rounds: int | None, last: int | None) -> None:
    training = training_graph(looped(rounds, last), Options(loss="loss", choice=Choice(wrt=["w"])))
    assert "Loop" not in {node.op_type for node in training.graph.node}
    session = onnxruntime.InferenceSession(training.SerializeToString(), providers=["CPUExecutionProvider"])
    value, found = session.run(["loss", "w_grad"], {"w": W})
    taken = rounds if last is None else last + 1
    assert taken is not None
    assert value == pytest.approx(loss(W.astype(float), taken), rel=1e-5)
    for place in range(3):
        step = np.eye(3)[place] * 1e-6
        assert found[place] == pytest.approx((loss(W + step, taken) - loss(W - step, taken)) / 2e-6, rel=1e-3, abs=1e-4)


def test_what_is_read_in_a_loop_alone_is_trained() -> None:
    training = training_graph(looped(4, None), Options(loss="loss"))
    assert {"w_grad", "x_grad"} <= {output.name for output in training.graph.output}


@pytest.mark.parametrize("rounds", [None, 10**9])
def test_rounds_that_depend_on_data_or_have_no_end_are_refused(rounds: int | None) -> None:
    with pytest.raises(BadInput, match="no gradient rule for Loop"):
        training_graph(looped(rounds, None), Options(loss="loss", choice=Choice(wrt=["w"])))
