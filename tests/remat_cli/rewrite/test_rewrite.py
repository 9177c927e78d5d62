"""Rewritten models run in onnxruntime: same bits, the plan's order, the plan's memory."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from remat_cli.ingest import ingest
from remat_cli.model.problem_of import as_rewritten, problem_of
from remat_cli.model.semantics import needs_training_build
from remat_cli.onnx_graph.walk import default_order, edges
from remat_cli.planning.stock.rewriting import rewrite_robustly
from solvers.plan import lower
from solvers.simulate import simulate
from tests.remat_cli.random_models import random_model
from tests.remat_cli.rewrite.plans import captured, random_order, subject
from tests.remat_cli.strict_session import feeds, trace

ALL_OFF = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def by_default(model: onnx.ModelProto, folder: Path, **settings: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Kernels in the order in which they ran, with the bytes held after each, and the outputs."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    for name, value in settings.items():
        setattr(options, name, value)
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "default")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, feeds(model))
    events = json.loads(Path(session.end_profiling()).read_text())
    return [event for event in events if event.get("cat") == "Node"], outputs


def held(event: dict[str, Any]) -> int:
    return int(event["args"]["mem_bytes_requested_in_use"])


def same(before: list[Any], after: list[Any]) -> bool:
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_random_orders_of_random_models(seed: int, tmp_path: Path) -> None:
    graph, problem = subject(random_model(seed))
    plan = lower(problem, random_order(problem, seed))
    found = rewrite_robustly(graph, problem, plan)
    onnx.checker.check_model(found.model)
    _, before = trace(graph.model, tmp_path)
    kernels, after = trace(found.model, tmp_path)
    assert same(before, after)
    bodies = [node.name for node in found.model.graph.node if node.op_type != "Constant"]
    assert [kernel.node for kernel in kernels] == bodies
    predicted = simulate(found.prediction.problem, found.prediction.strict)
    gap = predicted.memory[0] - kernels[0].held  # inputs and large weights, which live outside of the arena
    assert [kernel.held + gap for kernel in kernels] == list(predicted.memory)
    assert (found.promise.strict or 0) <= simulate(problem, plan).peak + 4096  # less where views nobody reads are gone
    _, anyway = by_default(found.model, tmp_path)
    assert same(by_default(graph.model, tmp_path)[1], anyway)


def test_captures_and_outputs_left_out(tmp_path: Path) -> None:
    graph, problem = subject(captured())
    names = [op.name for op in graph.ops]
    order = [names.index(n) for n in ("tanh", "pool", "sigmoid", "choice", "tanh", "sigmoid", "choice", "mul", "sum")]
    found = rewrite_robustly(graph, problem, lower(problem, order))
    onnx.checker.check_model(found.model)
    nodes = {node.name: node for node in found.model.graph.node}
    assert list(nodes["pool"].output) == ["pooled"]
    inner = {
        name for attribute in nodes["choice__remat_1"].attribute for node in attribute.g.node for name in node.input
    }
    assert "b" not in inner
    assert "b" in {name for attribute in nodes["choice"].attribute for node in attribute.g.node for name in node.input}
    assert found.clones == 3
    assert same(trace(graph.model, tmp_path)[1], trace(found.model, tmp_path)[1])


@pytest.mark.parametrize("name", ["torch_cnn", "torch_mlp", "torch_unet_convt", "torch_gpt2_eager"])
def test_the_default_order_is_onnxruntimes(name: str, data: Path, tmp_path: Path) -> None:
    model = onnx.load(data / f"{name}.onnx")
    nodes = model.graph.node
    expected = default_order(edges([list(node.input) for node in nodes], [list(node.output) for node in nodes]))
    kernels, _ = by_default(model, tmp_path, graph_optimization_level=ALL_OFF)
    ran = [event["name"].removesuffix("_kernel_time") for event in kernels]
    assert ran == [nodes[index].name for index in expected]


@pytest.mark.parametrize("name", ["torch_cnn", "torch_unet_convt"])
def test_clones_and_order_survive_default_options(name: str, data: Path, tmp_path: Path) -> None:
    graph, problem = subject(onnx.load(data / f"{name}.onnx"))
    found = rewrite_robustly(graph, problem, lower(problem, random_order(problem, 1, 0.2)))
    kernels, after = by_default(found.model, tmp_path, enable_mem_pattern=False)
    ran = [event["name"].removesuffix("_kernel_time") for event in kernels]
    place = {node.name: index for index, node in enumerate(found.model.graph.node)}
    ops = {step.name for step in found.model.graph.node if "__remat_" in step.name and step.op_type == "Conv"}
    assert ops
    assert ops <= set(ran)
    plain = [place[name] for name in ran if name in place and "__token" not in name and "__leaf" not in name]
    strays = sum(before > after for before, after in pairwise(plain))
    assert strays <= 0.05 * len(plain)  # fused ops get new places
    assert same(by_default(graph.model, tmp_path)[1], after)
    gap = found.prediction.problem.resident - problem.resident
    predicted = (found.promise.default or 0) - problem.resident - gap
    assert max(map(held, kernels)) <= 1.05 * predicted + 4096


def test_leaves_are_a_chain_whose_shapes_are_told(data: Path) -> None:
    """onnxruntime sorts what is ready, and looks through what was freed: thousands of leaves at once took minutes."""
    graph, problem = subject(onnx.load(data / "torch_cnn.onnx"))
    model = rewrite_robustly(graph, problem, lower(problem, random_order(problem, 1, 0.2))).model
    leaves = [node for node in model.graph.node if "__leaf" in node.name]
    assert len(leaves) > 10
    assert list(model.graph.node)[-len(leaves) :] == leaves
    assert all(after.input[0] == before.output[0] for before, after in pairwise(leaves))
    read = {name for node in model.graph.node for name in node.input}
    assert leaves[-1].output[0] not in read
    anchors = {name for node in model.graph.node for name in node.output if "__leaf" in name or "__token" in name}
    assert anchors <= {info.name for info in model.graph.value_info}


def test_copies_of_outputs_and_names() -> None:
    graph, problem = subject(captured())
    names = [op.name for op in graph.ops]
    order = [names.index(n) for n in ("tanh", "pool", "sigmoid", "choice", "mul", "mul", "sum")]
    model = rewrite_robustly(graph, problem, lower(problem, order)).model
    made = [name for node in model.graph.node for name in node.output if name]
    assert len(made) == len(set(made))
    assert [node.output[0] for node in model.graph.node if node.op_type == "Mul"] == ["y__remat_1", "y"]
    assert [value.name for value in model.graph.output] == ["y", "z"]


def test_training_ops_see_the_shapes_that_they_infer_from(data: Path) -> None:
    """Without them onnxruntime-training 1.19 crashes as it loads a MaxPoolGrad."""
    graph = ingest(data / "ort_light_resnet50.onnx", {})
    problem = as_rewritten(problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem)
    found = rewrite_robustly(graph, problem, lower(problem, random_order(problem, 1, 0.05)))
    told = {info.name for info in found.model.graph.value_info}
    made = {name for step in found.model.graph.node for name in step.output if "__hidden_shape" in step.name}
    assert made - told
    trained = [step for step in found.model.graph.node if needs_training_build(step)]
    assert not any(made.intersection(step.input) for step in trained)
