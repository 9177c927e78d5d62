"""Copies that optimizers would treat differently: onnxruntime's default session is the witness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.model.sessions import DEFAULT
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.measured import more_once, run_once
from remat_cli.planning.stock import same_kernels
from remat_cli.planning.stock.numbering import find_astray, number_kernels
from remat_cli.planning.stock.rewriting import rewrite_robustly
from remat_cli.planning.stock.same_kernels import rewrite_surely
from remat_cli.planning.subjects.subject import Subject
from solvers.plan import Plan, lower
from solvers.reductions.views import reduced
from tests.remat_cli.fusing_models import fusing_model
from tests.remat_cli.rewrite.plans import random_order


def by_default(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [result for _ in range(2) for result in session.run(None, feeds)]


def planned(subject: Subject, seed: int) -> Plan:
    smaller = reduced(subject.problem)
    return lower(subject.problem, smaller.expand(random_order(smaller.problem, seed, 0.1)))


def same(before: list[Any], after: list[Any]) -> bool:
    return all(np.array_equal(old, new, equal_nan=True) for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("seed", [28, 31, 40, 61])
def test_results_are_the_same_by_default(seed: int) -> None:
    model = fusing_model(seed)
    subject = load_subject(model, None, {}, DEFAULT)
    plan = planned(subject, seed)
    found = rewrite_surely(subject, plan)
    assert not found.astray
    assert found.clones > 0
    feeds = feeds_of(subject.graph, ops_of(subject.graph), seed)
    before = by_default(model, feeds)
    assert same(before, by_default(found.model, feeds))
    plain = load_subject(model, None, {})  # op by op, as the file has them
    assert not same(before, by_default(rewrite_robustly(plain.graph, plain.problem, planned(plain, seed)).model, feeds))


def test_what_cannot_be_let_be_is_run_once() -> None:
    """As often as it is asked, more ops are run once; in the end all are, and nothing is copied."""
    subject = load_subject(fusing_model(0), None, {}, DEFAULT)
    some = subject.graph.ops[5]
    once = more_once(subject, some.writes, ())
    assert some.name in once
    while len(once) < len(subject.nodes):
        wider = more_once(subject, some.writes, once)
        assert wider > once
        once = wider
    assert all(node.once for node in run_once(subject, once).problem.nodes)


def numbers(*nodes: onnx.NodeProto, **constants: Any) -> Any:
    told = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in nodes[-1].output]
    stored = [numpy_helper.from_array(np.array(array), name) for name, array in constants.items()]
    model = helper.make_model(helper.make_graph(nodes, "g", told, ends, stored))
    return number_kernels(onnx.shape_inference.infer_shapes(model, data_prop=True), {})


node = helper.make_node


def test_names_views_and_parts_do_not_count() -> None:
    one = numbers(node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Exp", ["b"], ["y"]))
    assert find_astray(one, one) == set()
    shape, start, end, axis = np.array([4, 6]), np.array([3]), np.array([6]), np.array([1])
    other = numbers(
        node("Reshape", ["x", "shape"], ["guard"]),
        node("Slice", ["guard", "start", "end", "axis"], ["part"]),
        node("Exp", ["part"], ["z"]),
        shape=shape,
        start=start,
        end=end,
        axis=axis,
    )
    assert find_astray(one, other) == set()


def test_how_a_file_spells_attributes_and_constants_does_not_count() -> None:
    def summed(axes: onnx.TensorProto, **attributes: int) -> Any:
        made = node("ReduceSum", ["x", "axes"], ["s"], **attributes)
        told = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])]
        ends = [helper.make_tensor_value_info("s", TensorProto.FLOAT, None)]
        return number_kernels(helper.make_model(helper.make_graph([made], "g", told, ends, [axes])), {})

    typed = onnx.TensorProto(name="axes", data_type=TensorProto.INT64, dims=[1], int64_data=[1])
    raw = numpy_helper.from_array(np.array([1]), "axes")
    assert find_astray(summed(typed), summed(raw, keepdims=1, noop_with_empty_axes=0)) == set()
    assert find_astray(summed(typed), summed(raw, keepdims=0))
    assert find_astray(summed(typed), summed(numpy_helper.from_array(np.array([0]), "axes")))


def test_another_kernel_is_named() -> None:
    plain = numbers(node("Neg", ["x"], ["n"]), node("Exp", ["n"], ["y"]))
    assert find_astray(plain, numbers(node("Exp", ["x"], ["y"]))) == {"x", "y"}
    assert find_astray(plain, numbers(node("Neg", ["x"], ["n"]), node("Exp", ["n"], ["e"]), node("Exp", ["e"], ["y"])))
    assert find_astray(plain, numbers(node("Abs", ["x"], ["a"]), node("Exp", ["a"], ["y"]))) == {"x", "a", "y"}


def test_shapes_are_shown_before_anything_else_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is let be loses its guards, so that its copies may be merged; a shape that is shown costs less."""
    subject = load_subject(fusing_model(31), None, {}, DEFAULT)
    plan = planned(subject, 31)
    plain = rewrite_robustly(subject.graph, subject.problem, plan)
    misled = frozenset(plain.prediction.origin[name] for name in plain.hidden)
    assert misled
    monkeypatch.setattr(same_kernels, "_faults", lambda _, __, found: (misled - found.shown, frozenset(), None))
    found = rewrite_surely(subject, plan)
    assert not found.astray
    assert (found.shown, found.bare) == (misled, frozenset())
    assert not misled.intersection(found.prediction.origin[name] for name in found.hidden)
    assert found.guards == plain.guards


def test_what_the_original_s_kernel_reads_is_named_where_another_reads_something_else(data: Path) -> None:
    """Once a Transpose is pushed away, no kernel that runs names what it made."""
    subject = load_subject(onnx.load(data / "torch_cnn.onnx"), None, {}, DEFAULT)
    plan = planned(subject, 3)
    found = rewrite_robustly(subject.graph, subject.problem, plan)
    original = subject.behaviour.kernels
    assert original is not None
    kernel = next(node for node in original.graph.node if node.output[0] in subject.graph.outputs)
    pushed = onnx.ModelProto()
    pushed.CopyFrom(found.model)
    maker = next(node for node in pushed.graph.node if kernel.output[0] in node.output)
    gone, maker.input[0] = maker.input[0], subject.graph.inputs[0]
    after = number_kernels(pushed, original.shapes)
    assert same_kernels._gone(original, after, {}, frozenset(kernel.output)) == {gone}


def test_where_that_alone_does_not_help_more_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a Transpose that optimizers push along a path, until something further on stops it: a guard of ours."""
    subject = load_subject(fusing_model(0), None, {}, DEFAULT)
    plan = planned(subject, 0)
    first = subject.graph.ops[0]
    second = next(op for op in subject.graph.ops if first.outputs[0] in op.reads)
    monkeypatch.setattr(
        same_kernels,
        "_faults",
        lambda _, __, found: (frozenset(() if second.outputs[0] in found.bare else first.outputs), frozenset(), None),
    )
    found = rewrite_surely(subject, plan)
    assert not found.astray
    assert found.bare >= {*first.outputs, *second.outputs}
