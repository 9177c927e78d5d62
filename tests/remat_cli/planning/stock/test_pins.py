"""Updates of inputs in place where sessions choose the order: the bits of both copies, whatever order runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from remat_cli.model.sessions import DEFAULT
from remat_cli.planning.loading import load_subject
from remat_cli.planning.stock.pins import find_ops_behind, find_unpinned
from remat_cli.planning.stock.same_kernels import rewrite_surely
from remat_cli.planning.subjects.subject import Subject
from remat_cli.rewrite import Rewritten
from remat_cli.runtime.in_place import run_in_place
from solvers.plan import lower
from solvers.reductions.views import reduced
from tests.remat_cli.rewrite.plans import random_order
from tests.remat_cli.updating_models import STATE, Updating
from tests.sampling import few

ALL, NONE = ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def session(model: onnx.ModelProto, level: Any, parallel: bool = False) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    if parallel:
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = 2
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def wrong(model: onnx.ModelProto, level: Any, bound: Any, pairs: dict[str, str], seed: int) -> bool:
    """Whether three steps of `bound`, with the pairs in place, differ from those of the model with both copies."""
    numbers, witness = np.random.default_rng(seed), session(model, level)
    names = [output.name for output in witness.get_outputs()]
    apart = {name: numbers.random((4, 6), np.float32) for name in STATE}
    state = {name: value.copy() for name, value in apart.items()}
    for _ in range(3):
        x = numbers.random((4, 6), np.float32)
        before = dict(zip(names, witness.run(names, {**apart, "x": x}), strict=True))
        after = run_in_place(bound, {**state, "x": x}, pairs)
        if any(before[name].tobytes() != after[name].tobytes() for name in names):
            return True
        apart = {name: before[f"{name}_new"] for name in STATE}
        state = {name: after[f"{name}_new"] for name in STATE}
    return False


def recomputed(subject: Subject, seed: int) -> Rewritten:
    smaller = reduced(subject.problem)
    order = smaller.expand(random_order(smaller.problem, seed, 0.4))
    return rewrite_surely(subject, lower(subject.problem, order))


@pytest.mark.parametrize("seed", few(range(10), 5))
def test_any_order_gives_the_bits_of_both_copies(seed: int) -> None:
    """At two levels, one op after the other and several at a time; without the pins no order is sure."""
    model = Updating(seed).model()
    subject = load_subject(model, None, {}, DEFAULT, in_place=True)
    assert subject.graph is not None
    pairs = dict(subject.graph.in_place)
    assert pairs
    found = recomputed(subject, seed)
    assert not found.astray
    assert not found.unpinned
    for level in (ALL, NONE):
        for parallel in (False, True):
            assert not wrong(model, level, session(found.model, level, parallel), pairs, seed)


def late_reader() -> onnx.ModelProto:
    """A step whose default order reads `w` after its update, as the last leaf of the file comes first."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="y"),
        helper.make_node("Mul", ["x", "x"], ["dw"], name="dw"),
        helper.make_node("Sub", ["w", "dw"], ["w_new"], name="update"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("x", "w", "y", "w_new")]
    graph = helper.make_graph(nodes, "late", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_without_pins_the_runtime_may_write_too_early() -> None:
    """The file's order is right, the runtime's own is another; a plan of the same model is pinned."""
    model = late_reader()
    subject = load_subject(model, None, {}, DEFAULT, in_place=True)
    assert subject.graph is not None
    x, w = (np.full((4, 4), value, np.float32) for value in (2.0, 1.0))
    pairs = dict(subject.graph.in_place)
    assert pairs == {"w_new": "w"}
    assert find_unpinned(subject.graph, model.graph) == {"w_new"}
    assert run_in_place(session(model, NONE), {"x": x, "w": w.copy()}, pairs)["y"][0, 0] != 8
    found = rewrite_surely(subject, lower(subject.problem, range(3)))
    assert not found.unpinned
    assert not find_unpinned(subject.graph, found.model.graph)
    for level in (ALL, NONE):
        made = run_in_place(session(found.model, level), {"x": x, "w": w.copy()}, pairs)
        assert made["y"][0, 0] == 8
        assert made["w_new"][0, 0] == -3


def test_ops_that_come_before_all_updates_in_any_order() -> None:
    subject = load_subject(late_reader(), None, {}, DEFAULT, in_place=True)
    found = rewrite_surely(subject, lower(subject.problem, range(3)))
    behind = find_ops_behind(found.model.graph, {"w_new"})
    assert {"y", "dw"} <= behind
    assert "update" not in behind
    assert "y" not in find_ops_behind(late_reader().graph, {"w_new"})
