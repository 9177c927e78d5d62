"""Steps that write new state before their file has read all of the old: the order in which they are planned."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import remat_cli as remat
from remat_cli.ingest import ingest_content
from remat_cli.model.graph import Graph
from remat_cli.model.in_place import hold_back, updates_of

SIZE = [32, 32]


def model(*nodes: onnx.NodeProto, inputs: str = "x w", outputs: str = "w_new y") -> onnx.ModelProto:
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SIZE) for name in names.split()]
        for names in (inputs, outputs)
    ]
    graph = helper.make_graph(list(nodes), "step", *values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def node(kind: str, reads: str, write: str) -> onnx.NodeProto:
    return helper.make_node(kind, reads.split(), [write], name=write)


def held_back(made: onnx.ModelProto) -> tuple[Graph, Graph]:
    graph = ingest_content(made.SerializeToString())
    return graph, hold_back(graph, True)


EARLY = model(
    node("MatMul", "x x", "g"),
    node("Sub", "w g", "w_new"),
    node("Neg", "w_new", "after"),
    node("MatMul", "g w", "dx"),
    node("Add", "dx after", "y"),
)


def test_an_update_waits_for_what_reads_the_old_value_and_its_readers_wait_with_it() -> None:
    graph, found = held_back(EARLY)
    assert updates_of(graph, True) == {}
    assert [op.name for op in found.ops] == ["g", "dx", "w_new", "after", "y"]
    assert updates_of(found, True) == {"w_new": "w"}


def test_what_can_be_no_better_stays() -> None:
    """A reader that is made from the new value; and two updates that wait for each other."""
    made_from = model(node("MatMul", "x x", "g"), node("Sub", "w g", "w_new"), node("MatMul", "w_new w", "y"))
    _, found = held_back(made_from)
    assert updates_of(found, True) == {}
    crossed = model(node("Sub", "w v", "w_new"), node("Sub", "v w", "v_new"), inputs="x w v", outputs="w_new v_new")
    _, found = held_back(crossed)
    assert updates_of(found, True) == {"v_new": "v"}
    settled = model(node("MatMul", "x w", "g"), node("Sub", "w g", "w_new"), node("Neg", "g", "y"))
    graph, found = held_back(settled)
    assert found is graph


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_the_file_is_planned_with_readers_first(seed: int) -> None:
    """Whatever legal order the file has, the ops are the same, and each runs after those it reads."""
    random, nodes = Random(seed), list(EARLY.graph.node)
    order: list[onnx.NodeProto] = []
    known = {"x", "w"}
    while len(order) < len(nodes):
        ready = [one for one in nodes if one not in order and known.issuperset(one.input)]
        order.append(random.choice(ready))
        known.update(order[-1].output)
    graph, found = held_back(model(*order))
    assert updates_of(found, True) == {"w_new": "w"}
    assert sorted(op.name for op in found.ops) == sorted(op.name for op in graph.ops)
    known = {"x", "w"}
    for op in found.ops:
        assert known.issuperset(op.reads)
        known.update(op.writes)


@pytest.mark.slow
def test_its_steps_in_place_are_those_with_both_copies() -> None:
    """Within less than both copies take, which is 24,576 bytes."""
    plan = remat.solve(EARLY, budget=24_000, work_limit=500, cache=False, in_place=True)
    assert plan.recorded.in_place == {"w_new": "w"}
    assert remat.verify(plan).ok
    numbers = np.random.default_rng(0)
    state = numbers.random(SIZE, np.float32)
    apart, bound, witness = state.copy(), remat.session(plan), onnxruntime.InferenceSession(EARLY.SerializeToString())
    for _ in range(3):
        x = numbers.random(SIZE, np.float32)
        apart, y = witness.run(["w_new", "y"], {"x": x, "w": apart})
        assert bound.run(["y"], {"x": x, "w": state})[0].tobytes() == y.tobytes()
        assert state.tobytes() == apart.tobytes()
