"""A Problem tells the truth: in ONNX Runtime's strict session the order is the graph's and memory is as simulated,
to the byte, after every single kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from remat_cli.ingest import graph_of, ingest
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import Named, problem_of
from solvers.faults import faults
from solvers.problem import RESIDENT, Kind
from solvers.schedule import baseline
from tests.remat_cli.random_models import random_model
from tests.remat_cli.strict_session import feeds, session, trace

HERE = Path("model.onnx")


def named_problem(graph: Graph) -> Named:
    return problem_of(graph, {op.name: (1, 0) for op in graph.ops})


def check_against_runtime(graph: Graph, folder: Path) -> list[np.ndarray]:
    """Workspace is gone when a kernel ends, so it plays no part. Returns the outputs."""
    named = named_problem(graph)
    problem = replace(named.problem, optional=frozenset())  # a model as it stands leaves nothing out
    assert not list(faults(problem))
    kernels, outputs = trace(graph.model, folder)
    assert tuple(kernel.node for kernel in kernels) == named.nodes
    expected = [held - problem.resident for held in baseline(problem)[1].memory]
    small_weights = kernels[0].held - expected[0]  # some weights live in the arena too
    assert 0 <= small_weights <= problem.resident
    assert [kernel.held - small_weights for kernel in kernels] == expected
    return outputs


@pytest.mark.parametrize("seed", range(80))
def test_random_models(seed: int, tmp_path: Path) -> None:
    check_against_runtime(graph_of(random_model(seed), HERE), tmp_path)


@pytest.mark.parametrize("name", ["torch_cnn", "torch_gpt2_eager", "torch_mlp", "torch_unet_convt"])
def test_exported_training_graphs(name: str, data: Path, tmp_path: Path) -> None:
    check_against_runtime(ingest(data / f"{name}.onnx"), tmp_path)


def floats(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    opset: int = 18,
    functions: tuple[onnx.FunctionProto, ...] = (),
) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    graph = helper.make_graph(nodes, "test", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)


def local_function() -> onnx.FunctionProto:
    body = [helper.make_node("Relu", ["p"], ["t"], name="first"), helper.make_node("Exp", ["t"], ["q"], name="second")]
    return helper.make_function("local", "F", ["p"], ["q"], body, [helper.make_opsetid("", 18)])


NODE = helper.make_node
FUNCTIONS = {
    "the loss and an activation": model_of(
        [
            NODE("Neg", ["x"], ["a"]),
            NODE("HardSwish", ["a"], ["b"]),
            NODE("Exp", ["x"], ["c"]),
            NODE("SoftmaxCrossEntropyLoss", ["b", "labels"], ["loss", "logp"]),
            NODE("Neg", ["c"], ["y"]),
            NODE("Neg", ["logp"], ["z"]),
        ],
        [floats("x", 4, 8), helper.make_tensor_value_info("labels", TensorProto.INT64, [4])],
        [floats("loss"), floats("y", 4, 8), floats("z", 4, 8)],
    ),
    "normalisation by groups": model_of(
        [
            NODE("Neg", ["x"], ["a"]),
            NODE("GroupNormalization", ["a", "s", "s"], ["b"], num_groups=2),
            NODE("Exp", ["x"], ["c"]),
            NODE("Mish", ["b"], ["y"]),
            NODE("CastLike", ["c", "x"], ["z"]),
        ],
        [floats("x", 2, 4, 3, 3), floats("s", 2)],
        [floats("y", 2, 4, 3, 3), floats("z", 2, 4, 3, 3)],
    ),
    "the model's own": model_of(
        [
            NODE("F", ["x"], ["a"], domain="local"),
            NODE("Neg", ["x"], ["b"]),
            NODE("F", ["a"], ["y"], domain="local"),
            NODE("Exp", ["b"], ["z"]),
        ],
        [floats("x", 4, 8)],
        [floats("y", 4, 8), floats("z", 4, 8)],
        functions=(local_function(),),
    ),
}


@pytest.mark.parametrize("model", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_are_expanded_as_the_runtime_would(model: onnx.ModelProto, tmp_path: Path) -> None:
    original = session(model).run(None, feeds(model))
    graph = graph_of(onnx.ModelProto.FromString(model.SerializeToString()), HERE)
    onnx.checker.check_model(graph.model)
    for before, after in zip(original, check_against_runtime(graph, tmp_path), strict=True):
        assert np.array_equal(before, after)


def test_what_is_marked() -> None:
    nodes = [
        NODE("Reshape", ["x", "shape"], ["flat"], name="view"),
        NODE("Relu", ["flat"], ["a"], name="resident"),
        NODE("Relu", ["a"], ["b"], name="over"),
        NODE("Dropout", ["b", "ratio", "training"], ["c", "mask"], name="random"),
        NODE("Dropout", ["c", "ratio", "training"], ["d"], name="seeded", seed=3),
        NODE("Unsqueeze", ["d", "axes"], ["e"], name="wide"),
        NODE("MaxPool", ["e"], ["f", "indices"], name="pool", kernel_shape=[2]),
    ]
    inputs = [floats("x", 2, 3, 4), floats("ratio"), helper.make_tensor_value_info("training", TensorProto.BOOL, [])]
    model = model_of(nodes, inputs, [floats("f", 1, 2, 11)])
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([2, 12]), "shape"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    named = named_problem(graph_of(model, HERE))
    node = dict(zip(named.nodes, named.problem.nodes, strict=True))
    number = {name: index for index, name in enumerate(named.values)}
    assert node["view"].views == ((number["flat"], RESIDENT),)
    assert node["resident"].overwrites == ()  # what it reads is an input, seen through a view
    assert node["over"].overwrites == ((number["b"], number["a"]),)
    assert (node["random"].once, node["seeded"].once, node["pool"].once) == (True, False, False)
    assert named.problem.optional == {number["indices"]}  # a mask is made whether it is asked for or not
    assert [node[name].kind for name in ("view", "over", "pool")] == [Kind.VIEW, Kind.POINTWISE, Kind.OPAQUE]
    assert named.problem.resident == 24 * 4 + 4 + 1 + 2 * 8 + 8


def test_outputs_that_are_inputs_are_no_values() -> None:
    model = model_of([NODE("Relu", ["x"], ["y"])], [floats("x", 2)], [floats("y", 2), floats("x", 2)])
    named = named_problem(graph_of(model, HERE))
    assert named.values == ("y",)
    assert named.problem.outputs == (0,)


def test_running_statistics_are_written_over() -> None:
    """ONNX Runtime writes them into the very input; a second run of the op would read other statistics."""
    names = ["x", "s", "b", "m", "v"]
    nodes = [
        NODE("BatchNormalization", names, ["y", "rm", "rv"], name="bn", training_mode=1),
        NODE("Neg", ["rm"], ["z"]),
    ]
    inputs = [floats("x", 2, 3, 4), *(floats(name, 3) for name in names[1:])]
    model = model_of(nodes, inputs, [floats("y", 2, 3, 4), floats("z", 3)])
    fed = feeds(model)
    before = fed["m"].copy()
    session(model).run(None, fed)
    assert not np.array_equal(before, fed["m"])
    problem = named_problem(graph_of(model, HERE)).problem
    assert problem.nodes[0].once
    assert problem.nodes[0].views == ((1, RESIDENT), (2, RESIDENT))


def test_what_ops_take_of_inputs_and_weights() -> None:
    """By the place among inputs, then weights, with their bytes: what traffic counts beside the values."""
    nodes = [NODE("Add", ["x", "w"], ["a"], name="add"), NODE("Mul", ["a", "w"], ["y"], name="mul")]
    model = model_of(nodes, [floats("x", 3)], [floats("y", 3)])
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(3, np.float32), "w"))
    problem = named_problem(graph_of(model, HERE)).problem
    assert [node.takes for node in problem.nodes] == [((0, 12), (1, 12)), ((1, 12),)]
