"""Which outputs may take the places of inputs, and why others may not."""

from __future__ import annotations

from pathlib import Path

import onnx
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


def refusal(given: Graph, pairs: dict[str, str]) -> str:
    with pytest.raises(BadInput) as error:
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
    assert updates_of(given, None) == {"updated_w": "w"}
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
    assert "no input 'x'" in refusal(late, {"w_new": "x"})
    assert "no output 'z'" in refusal(late, {"z": "w"})


def test_an_output_of_another_op_may_come_once_nobody_reads_the_input() -> None:
    given = graph(node("MatMul", "w g", "y"), node("MatMul", "y g", "w_new"))
    assert updates_of(given, {"w_new": "w"}) == {"w_new": "w"}


def test_pairs_as_they_are_written() -> None:
    assert parse_pairs(("w=w_new", "m=m_new")) == {"w_new": "w", "m_new": "m"}
    for wrong in (("w",), ("=w",), ("w=",), ("w=v", "u=v")):
        with pytest.raises(Usage):
            parse_pairs(wrong)


def test_narrow_types_are_left_apart_unless_all_that_runs_is_written_out() -> None:
    step = remat.grad(FORWARD, optimizer="sgd", precision="float16")
    given = ingest_content(step.SerializeToString())
    assert updates_of(given, None) == {}
    assert len(updates_of(given, None, written_out=True)) > 10
