"""Which outputs may take the places of inputs, and why others may not."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import remat_cli as remat
from remat_cli.errors import BadInput, Usage
from remat_cli.ingest import ingest_content
from remat_cli.model.graph import Graph
from remat_cli.model.in_place import parse_pairs, updates_of

FORWARD = Path(__file__).parents[2] / "data" / "torch" / "language_train_whole.onnx"
SIZE = [4, 4]


def graph(*nodes: onnx.NodeProto, inputs: str = "w g", outputs: str = "w_new", stored: str = "") -> Graph:
    tensors = [helper.make_tensor(name, TensorProto.FLOAT, SIZE, [0.0] * 16) for name in stored.split()]
    made = helper.make_graph(
        list(nodes),
        "step",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SIZE) for name in inputs.split()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SIZE) for name in outputs.split()],
        tensors,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return ingest_content(model.SerializeToString())


def node(kind: str, reads: str, write: str) -> onnx.NodeProto:
    return helper.make_node(kind, reads.split(), [write], name=write)


def refusal(given: Graph, pairs: dict[str, str], kind: type[Exception] = BadInput) -> str:
    with pytest.raises(kind) as error:
        updates_of(given, pairs)
    return str(error.value)


@pytest.mark.parametrize(("optimizer", "times"), [("sgd", 1), ("momentum", 2), ("adam", 3), ("adamw", 3)])
def test_all_state_of_our_own_steps(optimizer: str, times: int) -> None:
    step = remat.grad(FORWARD, optimizer=optimizer)
    found = updates_of(ingest_content(step.SerializeToString()), None)
    made = [output.name for output in step.graph.output if output.name != "loss"]
    assert sorted(found) == sorted(made)
    assert all(output == f"{old}_new" for output, old in found.items())
    assert len(found) >= times * 10


def test_outputs_that_other_tools_name_after_inputs() -> None:
    nodes = (node("Mul", "g rate", "step"), node("Sub", "w step", "updated_w"), node("Add", "g g", "w_sum"))
    given = graph(*nodes, inputs="w g rate", outputs="updated_w w_sum")
    assert updates_of(given, True) == {"updated_w": "w"}
    assert updates_of(given, None) == {}
    assert updates_of(given, {}) == {}


def test_what_is_not_safe_is_refused_by_name() -> None:
    late = graph(node("Sub", "w g", "w_new"), node("Mul", "w g", "y"), outputs="w_new y")
    assert "op 'y' reads 'w' and comes after op 'w_new'" in refusal(late, {"w_new": "w"})
    whole = graph(node("MatMul", "w g", "w_new"))
    assert "op 'w_new' (MatMul) reads 'w' itself" in refusal(whole, {"w_new": "w"})
    twice = graph(node("Sub", "w g", "w_new"), node("Add", "g g", "other"), outputs="w_new other")
    assert "'w_new' takes the place of 'w' already" in refusal(twice, {"w_new": "w", "other": "w"})
    stored = graph(node("Sub", "w g", "w_new"), stored="w")
    assert "stored in the file" in refusal(stored, {"w_new": "w"})
    shape = helper.make_node("Constant", [], ["shape"], value_ints=SIZE)
    view = graph(shape, node("Reshape", "w shape", "seen"), node("Sub", "seen g", "w_new"))
    assert "reads 'w' itself" in refusal(view, {"w_new": "w"})
    behind = graph(
        shape,
        node("Reshape", "w shape", "seen"),
        node("Neg", "g", "w_new"),
        node("Neg", "seen", "y"),
        outputs="w_new y",
    )
    assert "op 'y' reads 'w'" in refusal(behind, {"w_new": "w"})
    assert "no input 'x'" in refusal(late, {"w_new": "x"}, Usage)
    assert "no output 'z'" in refusal(late, {"z": "w"}, Usage)


def test_an_output_of_another_op_may_come_once_nobody_reads_the_input() -> None:
    given = graph(node("MatMul", "w g", "y"), node("MatMul", "y g", "w_new"))
    assert updates_of(given, {"w_new": "w"}) == {"w_new": "w"}


def test_pairs_as_they_are_written() -> None:
    assert parse_pairs(("w=w_new", "m=m_new")) == {"w_new": "w", "m_new": "m"}
    assert parse_pairs(("auto",)) is True
    for wrong in (("w",), ("=w",), ("w=",), ("w=v", "u=v"), ("auto", "w=v")):
        with pytest.raises(Usage):
            parse_pairs(wrong)


def test_narrow_types_are_left_apart_unless_all_that_runs_is_written_out() -> None:
    step = remat.grad(FORWARD, optimizer="sgd", precision="float16")
    given = ingest_content(step.SerializeToString())
    assert updates_of(given, None) == {}
    assert len(updates_of(given, None, written_out=True)) > 10


def others_step() -> onnx.ModelProto:
    """A step as another exporter might write it: momentum, running statistics, a loss scale and a counter."""
    nodes = [
        node("MatMul", "x w", "y"),
        node("ReduceMean", "y axis", "mean"),
        node("Mul", "y y", "square"),
        node("ReduceMean", "square every", "loss"),
        node("Mul", "y scale", "dy"),
        node("Transpose", "x", "xt"),
        node("MatMul", "xt dy", "g"),
        node("Mul", "m beta", "m_kept"),
        node("Add", "m_kept g", "m.out"),
        node("Mul", "m.out rate", "moved"),
        node("Sub", "w moved", "w.out"),
        node("Mul", "running_mean beta", "kept"),
        node("Add", "kept mean", "running_mean.out"),
        node("Mul", "scale beta", "scale.out"),
        node("Add", "step one", "step.out"),
    ]
    numbers = {"beta": 0.5, "rate": 0.1}
    tensors = [helper.make_tensor(name, TensorProto.FLOAT, [], [value]) for name, value in numbers.items()]
    tensors += [helper.make_tensor("one", TensorProto.INT64, [], [1])]
    tensors += [
        helper.make_tensor(name, TensorProto.INT64, [len(v)], v) for name, v in (("axis", [0]), ("every", [0, 1]))
    ]
    shapes = {"x": [4, 4], "w": [4, 4], "m": [4, 4], "running_mean": [1, 4], "scale": []}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [
        helper.make_tensor_value_info(f"{name}.out", TensorProto.FLOAT, shapes[name]) for name in shapes if name != "x"
    ]
    inputs.append(helper.make_tensor_value_info("step", TensorProto.INT64, []))
    outputs.append(helper.make_tensor_value_info("step.out", TensorProto.INT64, []))
    outputs.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, [1, 1]))
    graph = helper.make_graph(nodes, "step", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.slow
def test_updates_of_a_step_that_another_exporter_wrote(tmp_path: Path) -> None:
    """All are found, and three steps give what three steps with both copies do: in memory of its own, and verified."""
    model = others_step()
    found = {f"{name}.out": name for name in ("w", "m", "running_mean", "scale", "step")}
    assert updates_of(ingest_content(model.SerializeToString()), True) == found
    plan = remat.solve(model, budget="99%", work_limit=2000, cache=False, in_place=True)
    assert plan.recorded.in_place == found
    plan.save(tmp_path / "m.plan.json")
    assert remat.verify(tmp_path / "m.plan.json").ok
    random = np.random.default_rng(0)
    state = {name: random.random(shape, np.float32) for name, shape in (("w", (4, 4)), ("m", (4, 4)))}
    state |= {"running_mean": np.zeros((1, 4), np.float32), "scale": np.array(1, np.float32), "step": np.array(0)}
    apart = {name: value.copy() for name, value in state.items()}
    session, witness = remat.session(plan), onnxruntime.InferenceSession(model.SerializeToString())
    for _ in range(3):
        x = random.random((4, 4), np.float32)
        session.run(None, {**state, "x": x})
        made = witness.run(list(found), {**apart, "x": x})
        apart = dict(zip(found.values(), made, strict=True))
        assert all(state[name].tobytes() == value.tobytes() for name, value in apart.items())


def normalizing() -> onnx.ModelProto:
    """An inference model as exporters write it that were told to keep BatchNormalization in training mode."""
    names = ["scale", "bias", "mean", "var"]
    nodes = [
        helper.make_node("BatchNormalization", ["x", *names], ["y", "mean_new", "var_new"], training_mode=1),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    shapes = {"x": [2, 4, 8, 8], "z": [2, 4, 8, 8], **{name: [4] for name in (*names, "mean_new", "var_new")}}
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    inputs, outputs = ["x", *names], ["z", "mean_new", "var_new"]
    made = helper.make_graph(nodes, "normal", [values[n] for n in inputs], [values[n] for n in outputs])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.slow
def test_a_run_of_a_graph_that_grad_did_not_make_leaves_the_callers_arrays_as_they_are() -> None:
    model, random = normalizing(), np.random.default_rng(0)
    feeds = {"x": random.random((2, 4, 8, 8), np.float32)}
    feeds |= {name: random.random(4, np.float32) for name in ("scale", "bias", "mean", "var")}
    witness = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for asked, changed in ({}, False), ({"in_place": False}, False), ({"in_place": True}, True):
        with pytest.warns(remat.RematWarning) as warned:
            plan = remat.solve(model, minimize="peak", work_limit=500, cache=False, **asked)
        given = {name: value.copy() for name, value in feeds.items()}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            made = remat.session(plan).run(None, given)
        assert [a.tobytes() for a in made] == [a.tobytes() for a in witness]
        assert ({name for name in feeds if (given[name] != feeds[name]).any()} == {"mean", "var"}) == changed
        assert any("Runs change the arrays" in str(one.message) for one in warned) == changed
        assert any("Runs change the arrays" in str(one.message) for one in said) == changed
        assert any("--in-place" in str(one.message) for one in warned) == (not asked)
