"""What tensors are there for, held to what is known of the models: published parameter counts, optimizers' needs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.gradient.optimizers import Recipe
from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.training import Options, training_graph
from remat_cli.ingest import graph_of, ingest
from remat_cli.model.graph import Graph
from remat_cli.plans.roles import Role, roles_of
from remat_cli.zoo.build import build

FLOAT = 4
MLP = 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10
RESNET50 = 25_557_032  # torchvision's own count
RESNET18 = 11_689_512
GPT2_BLOCK = 12 * 128 * 128 + 13 * 128  # of a GPT-2 that is 128 wide: four matrices, their biases, two norms
STATES = {"momentum": 1, "adamw": 2}  # copies of the parameters


def resident(graph: Graph) -> Counter[Role]:
    """Bytes of inputs and weights by role."""
    roles = roles_of(graph)
    names = dict.fromkeys((*graph.inputs, *graph.weights))
    return Counter({role: sum(graph.values[n].bytes for n in names if roles[n] is role) for role in Role})


def written(graph: Graph) -> Counter[Role]:
    """Bytes of values by role."""
    roles = roles_of(graph)
    names = [name for op in graph.ops for name in op.writes]
    return Counter({role: sum(graph.values[n].bytes for n in names if roles[n] is role) for role in Role})


def step(name: str, optimizer: str = "none", wrt: tuple[str, ...] = (), **settings: int) -> onnx.ModelProto:
    options = Options(recipe=Recipe(optimizer), choice=Choice(wrt=wrt))
    return training_graph(build(name, weights="inputs", **settings), options)


def without_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model, in which no tensor's name says what it is."""
    renamed = {"": ""}

    def new(name: str) -> str:
        return renamed.setdefault(name, f"t{len(renamed)}")

    graph = model.graph
    for node in graph.node:
        node.name = ""
        node.input[:] = [new(name) for name in node.input]
        node.output[:] = [new(name) for name in node.output]
    for entry in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        entry.name = new(entry.name)
    return model


@pytest.mark.parametrize(
    "name, parameters, inputs",
    [
        ("torch_mlp", MLP, 4 * 32 * 784 + 8 * 32),
        ("ort_mlp", MLP, 4 * 32 * 784 + 8 * 32 + 1),
        ("ort_light_resnet50", RESNET50, 4 * 8 * 3 * 224 * 224 + 8 * 8 + 1),
        ("torch_gpt2_eager", 512 * 128 + 32 * 128 + 2 * GPT2_BLOCK + 2 * 128, 2 * 8 * 2 * 32),
    ],
)
@pytest.mark.parametrize("hidden", [False, True], ids=["named", "nameless"])
def test_parameters_of_exported_graphs(data: Path, name: str, parameters: int, inputs: int, hidden: bool) -> None:
    path = data / f"{name}.onnx"
    graph = graph_of(without_names(onnx.load(path)), path) if hidden else ingest(path)
    found = resident(graph)
    assert found[Role.PARAMETERS] == FLOAT * parameters
    assert found[Role.INPUTS] == inputs
    assert not found[Role.STATE]
    buffers = name.startswith("ort")  # onnxruntime-training accumulates gradients in inputs
    assert found[Role.GRADIENTS] == (FLOAT * parameters if buffers else 0)
    assert written(graph)[Role.GRADIENTS] >= FLOAT * parameters


@pytest.mark.parametrize("hidden", [False, True], ids=["named", "nameless"])
@pytest.mark.parametrize("optimizer", ["none", *STATES])
def test_a_step_with_an_optimizer(optimizer: str, hidden: bool) -> None:
    model = step("resnet18", optimizer, batch=2, image=32, classes=1000)
    graph = graph_of(without_names(model) if hidden else model, Path("m.onnx"))
    found, made = resident(graph), written(graph)
    copies = STATES.get(optimizer, 0)
    assert found[Role.PARAMETERS] == FLOAT * RESNET18
    assert found[Role.STATE] == copies * FLOAT * RESNET18 + (FLOAT if copies == 2 else 0)  # Adam counts its steps
    assert 4 * 2 * 3 * 32 * 32 + 8 * 2 <= found[Role.INPUTS] <= 4 * 2 * 3 * 32 * 32 + 8 * 2 + FLOAT
    assert FLOAT * RESNET18 <= made[Role.GRADIENTS] <= 1.1 * FLOAT * RESNET18
    assert made[Role.PARAMETERS] == (FLOAT * RESNET18 if optimizer != "none" else 0)  # after the step
    assert made[Role.STATE] == found[Role.STATE]


@pytest.mark.parametrize("hidden", [False, True], ids=["named", "nameless"])
def test_tied_weights(hidden: bool) -> None:
    """GPT-2's output layer shares the embedding: it is one parameter."""
    settings = {"layers": 2, "hidden": 128, "heads": 2, "batch": 2, "seq": 32, "vocabulary": 512, "positions": 32}
    model = step("gpt2", "adam", **settings)
    graph = graph_of(without_names(model) if hidden else model, Path("m.onnx"))
    count = 512 * 128 + 32 * 128 + 2 * GPT2_BLOCK + 2 * 128
    assert resident(graph)[Role.PARAMETERS] == FLOAT * count
    assert resident(graph)[Role.STATE] == 2 * FLOAT * count + FLOAT
    assert written(graph)[Role.GRADIENTS] >= FLOAT * count


def test_running_statistics_are_no_state() -> None:
    """They are updated, but nothing that is trained depends on the update."""
    graph = graph_of(step("resnet18", "adam", batch=2, image=32, classes=10), Path("m.onnx"))
    roles = roles_of(graph)
    means = [name for name in (*graph.inputs, *graph.weights) if f"{name}_new" in roles and "running" in name]
    assert means
    assert {roles[name] for name in means} == {Role.CONSTANTS}
    assert {roles[f"{name}_new"] for name in means} == {Role.CONSTANTS}


def test_frozen_parameters_are_parameters() -> None:
    forward = build("vgg16", weights="inputs", batch=1, image=32, classes=10)
    every = resident(graph_of(training_graph(forward, Options()), Path("m.onnx")))[Role.PARAMETERS]
    last = max((i.name for i in forward.graph.input if "classifier" in i.name or "fc" in i.name), default="")
    assert last
    some = graph_of(training_graph(forward, Options(choice=Choice(wrt=(last,)))), Path("m.onnx"))
    assert resident(some)[Role.PARAMETERS] == every
    assert written(some)[Role.GRADIENTS] == some.values[f"{last}_grad"].bytes


def test_a_forward_model_has_parameters_too() -> None:
    model = build("resnet18", batch=1, image=32, classes=1000)
    found = resident(graph_of(model, Path("m.onnx")))
    statistics = 2 * 4800  # a mean and a variance of each of its channels
    assert found[Role.PARAMETERS] == FLOAT * RESNET18
    assert found[Role.CONSTANTS] >= FLOAT * statistics


def test_a_step_by_hand() -> None:
    """y = x w, loss = mean(y y): each tensor's role is plain to see."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
        helper.make_node("Mul", ["y", "y"], ["square"], "square"),
        helper.make_node("ReduceMean", ["square"], ["loss"], "mean", keepdims=0),
        helper.make_node("Mul", ["y", "share"], ["dy"], "back"),
        helper.make_node("Transpose", ["x"], ["xt"], "turn", perm=[1, 0]),
        helper.make_node("MatMul", ["xt", "dy"], ["g"], "gradient"),
        helper.make_node("Mul", ["g", "rate"], ["change"], "change"),
        helper.make_node("Mul", ["v", "keep"], ["kept"], "keep"),
        helper.make_node("Add", ["kept", "change"], ["next"], "velocity"),
        helper.make_node("Sub", ["w", "next"], ["moved"], "step"),
    ]
    share, keep = (numpy_helper.from_array(np.array(0.1, np.float32), name) for name in ("share", "keep"))
    shapes = {"x": [8, 3], "w": [3, 5], "v": [3, 5], "rate": [], "loss": [], "moved": [3, 5], "next": [3, 5]}
    info = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    graph = helper.make_graph(
        nodes,
        "g",
        [info[n] for n in ("x", "w", "v", "rate")],
        [info[n] for n in ("loss", "moved", "next")],
        [share, keep],
    )
    roles = roles_of(graph_of(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), Path("m.onnx")))
    assert roles == {
        **dict.fromkeys(("w", "moved"), Role.PARAMETERS),
        **dict.fromkeys(("v", "next"), Role.STATE),
        **dict.fromkeys(("x", "rate"), Role.INPUTS),
        **dict.fromkeys(("share", "keep"), Role.CONSTANTS),
        **dict.fromkeys(("y", "square", "loss"), Role.ACTIVATIONS),
        **dict.fromkeys(("dy", "xt", "change", "kept"), Role.TEMPORARIES),
        "g": Role.GRADIENTS,
    }
