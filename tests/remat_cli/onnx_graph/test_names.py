"""Names that a graph defines twice, held to what ONNX Runtime loads."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph

from remat_cli.onnx_graph.names import find_name_fault

RELU = helper.make_node("Relu", ["m"], ["y"])
PRODUCT = helper.make_node("MatMul", ["x", "w"], ["m"])
WEIGHT = numpy_helper.from_array(np.ones((3, 3), np.float32), "w")


def model(
    *nodes: onnx.NodeProto, stored: tuple[onnx.TensorProto, ...] = (WEIGHT,), listed: bool = False
) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
    inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in stored if listed]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([*nodes], "g", inputs, outputs, [*stored])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=3 if listed else 10)


def choice(*then: onnx.NodeProto, stored: tuple[onnx.TensorProto, ...] = ()) -> onnx.ModelProto:
    """A model with an If whose first branch is `then`, and whose second makes `other` from m."""
    nodes = {"then_branch": then, "else_branch": (helper.make_node("Identity", ["m"], ["other"]),)}
    branches = {
        name: helper.make_graph(
            inside,
            name,
            [],
            [helper.make_tensor_value_info(inside[-1].output[0], TensorProto.FLOAT, None)],
            stored if name == "then_branch" else (),
        )
        for name, inside in nodes.items()
    }
    condition = numpy_helper.from_array(np.array(True), "c")
    return model(PRODUCT, helper.make_node("If", ["c"], ["y"], **branches), stored=(WEIGHT, condition))


def make(name: str, of: str = "m") -> onnx.NodeProto:
    return helper.make_node("Relu", [of], [name])


GOOD = {
    "each once": model(PRODUCT, RELU),
    "a weight that is an input too": model(PRODUCT, RELU, listed=True),
    "branches that share names": choice(make("other")),
    "a branch's weight with an outer name": choice(make("w2", "w"), stored=(WEIGHT,)),
}
BAD = {
    "an op makes a weight": model(PRODUCT, make("w"), RELU),
    "an op makes a listed weight": model(PRODUCT, make("w"), RELU, listed=True),
    "an op makes an input": model(PRODUCT, make("x"), RELU),
    "two ops make one": model(PRODUCT, make("y", "x"), RELU),
    "a branch makes an outer weight": choice(make("w")),
    "a branch makes an outer value": choice(make("m", "x")),
    "a branch makes an outer input": choice(make("x")),
    "a branch makes its own weight": choice(
        make("q"), make("r", "q"), stored=(numpy_helper.from_array(np.ones(1), "q"),)
    ),
}


def loads(made: onnx.ModelProto) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except (InvalidGraph, Fail):
        return False
    return True


@pytest.mark.parametrize("name", GOOD)
def test_what_the_runtime_loads_has_no_fault(name: str) -> None:
    assert loads(GOOD[name])
    assert not find_name_fault(GOOD[name].graph)


@pytest.mark.parametrize("name", BAD)
def test_what_no_runtime_loads_is_told(name: str) -> None:
    assert not loads(BAD[name])
    fault = find_name_fault(BAD[name].graph)
    assert "is written by both" in fault
    assert "\n" not in fault
