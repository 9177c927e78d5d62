"""Sequences of tensors against the same model with Split and Concat in their place."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from remat_cli.errors import BadInput
from remat_cli.gradient.training import Options, training_graph
from tests.remat_cli.gradient.nets import model, run, weight

N = helper.make_node
WEIGHTS = {"w": weight(0, 4, 6), "at0": np.array(0), "at1": np.array(-2), "at2": np.array(2), "two": np.array(2)}
HEAD = [N("MatMul", ["x", "w"], ["y"])]
PLAIN = [
    N("Split", ["y"], ["a", "b", "c"], axis=1, num_outputs=3),
    N("Mul", ["a", "b"], ["ab"]),
    N("Sub", ["ab", "c"], ["d"]),
]
TAIL = [N("Concat", ["d", "b"], ["out"], axis=1)]


def _gradient(nodes: list[onnx.NodeProto]) -> np.ndarray:
    made = training_graph(model([*HEAD, *nodes], {"x": [3, 4]}, "out", WEIGHTS), Options(loss="mse"))
    target = np.zeros([dim.dim_value for dim in made.graph.input[1].type.tensor_type.shape.dim], np.float32)
    return run(made, {"x": weight(1, 3, 4), "target": target, "w": WEIGHTS["w"]})["w_grad"]


def _taken(split: onnx.NodeProto) -> list[onnx.NodeProto]:
    picked = [N("SequenceAt", ["s", f"at{place}"], [name]) for place, name in enumerate("abc")]
    return [split, *picked, N("Mul", ["a", "b"], ["ab"]), N("Sub", ["ab", "c"], ["d"])]


def test_a_split_into_a_sequence_is_a_split() -> None:
    nodes = _taken(N("SplitToSequence", ["y", "two"], ["s"], axis=1))
    np.testing.assert_array_equal(_gradient([*nodes, *TAIL]), _gradient([*PLAIN, *TAIL]))


def test_a_sequence_is_put_together() -> None:
    together = [N("SequenceConstruct", ["d"], ["t"]), N("SequenceInsert", ["t", "b"], ["u"])]
    for join, ends in (({"axis": 1}, TAIL), ({"axis": 0, "new_axis": 1}, None)):
        nodes = [*PLAIN, *together, N("ConcatFromSequence", ["u"], ["out"], **join)]
        if ends is None:
            axes = N("Constant", [], ["zero"], value_ints=[0])
            ends = [axes, N("Unsqueeze", ["d", "zero"], ["d0"]), N("Unsqueeze", ["b", "zero"], ["b0"])]
            ends.append(N("Concat", ["d0", "b0"], ["out"], axis=0))
        np.testing.assert_array_equal(_gradient(nodes), _gradient([*PLAIN, *ends]))


def test_parts_of_one_can_lose_their_axis() -> None:
    nodes = [N("SplitToSequence", ["y"], ["s"], axis=0, keepdims=0), N("SequenceAt", ["s", "at2"], ["out"])]
    plain = [N("Gather", ["y", "at2"], ["out"], axis=0)]
    np.testing.assert_array_equal(_gradient(nodes), _gradient(plain))


def test_a_position_outside_is_refused() -> None:
    nodes = [N("SplitToSequence", ["y"], ["s"], axis=0, name="cut"), N("SequenceAt", ["s", "far"], ["out"], name="at")]
    far = N("Constant", [], ["far"], value_int=3)
    with pytest.raises(BadInput, match="node 'at': its position must be a constant within the sequence"):
        _gradient([far, *nodes])


def test_a_place_counted_from_the_back_is_before_that_one() -> None:
    minus = N("Constant", [], ["minus"], value_int=-1)
    together = [N("SequenceConstruct", ["d"], ["t"]), N("SequenceInsert", ["t", "b", "minus"], ["u"])]
    nodes = [*PLAIN, minus, *together, N("ConcatFromSequence", ["u"], ["out"], axis=1)]
    np.testing.assert_array_equal(_gradient(nodes), _gradient([*PLAIN, N("Concat", ["b", "d"], ["out"], axis=1)]))


def test_what_is_erased_takes_no_part() -> None:
    together = [N("SequenceConstruct", ["a", "d", "b"], ["t"]), N("SequenceErase", ["t", "at0"], ["u"])]
    nodes = [*PLAIN, *together, N("Identity", ["u"], ["v"]), N("ConcatFromSequence", ["v"], ["out"], axis=1)]
    np.testing.assert_array_equal(_gradient(nodes), _gradient([*PLAIN, *TAIL]))
