"""The graph that default sessions run: the original's kernels, and what its plans hold in either run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from remat_cli.checking.trying import peaks
from remat_cli.ingest import ingest, ingest_content
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import DEFAULT
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import find_solver
from remat_cli.planning.search.find import find
from remat_cli.planning.search.graphs import cheapest
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.untouched import share_base
from remat_cli.planning.stock.graph import default_graph, kernels, shapes_of
from remat_cli.planning.stock.same_kernels import rewrite_surely
from remat_cli.planning.stock.target import StockTarget
from remat_cli.planning.subjects.subject import Subject
from solvers.clock import limited
from solvers.plan import Plan, lower
from solvers.problem import Limits
from solvers.reductions.views import reduced
from tests.remat_cli.fusing_models import fusing_model
from tests.remat_cli.rewrite.plans import random_order
from tests.sampling import few


def planned(subject: Subject, seed: int, share: float) -> Plan:
    smaller = reduced(subject.problem)
    order = random_order(smaller.problem, seed, share) if share else range(len(smaller.problem.nodes))
    return lower(subject.problem, smaller.expand(order))


@pytest.mark.parametrize("name", few(["torch_gpt2_eager", "torch_mlp"], 1))
@pytest.mark.parametrize("hiding", [0, 3])
def test_both_runs_are_foretold(data: Path, name: str, hiding: int) -> None:
    subject = load_subject(data / f"{name}.onnx", None, {}, DEFAULT)
    assert subject.behaviour.optimized
    for seed, share in enumerate((0.0, 0.1)):
        model = rewrite_surely(subject, planned(subject, seed, share), hiding)
        assert not model.astray
        foretold = StockTarget().footprint(model, 0).promise
        feeds = feeds_of(subject.graph, ops_of(subject.graph))
        first, later = peaks(subject.graph, model.model, feeds, 1, 100.0)
        assert foretold.default == pytest.approx(first, rel=0.05)
        assert foretold.later_foretold == pytest.approx(later, rel=0.05)


@pytest.mark.parametrize("budget", [1, 99, 100, 101, 202, 18_863_960_614])
def test_as_much_may_be_foretold_as_is_counted_within_the_budget(budget: int) -> None:
    target = StockTarget()
    most = target.foretold_within(budget)
    assert target.counted(Promise(None, live=most)) <= budget < target.counted(Promise(None, live=most + 1))


def test_the_files_own_ops_are_looked_at_only_where_the_graph_that_runs_has_no_plan(data: Path) -> None:
    subject = load_subject(data / "torch_mlp.onnx", None, {}, DEFAULT)
    assert subject.behaviour.optimized

    def never() -> Subject:
        raise AssertionError("it was made")

    lazy = replace(subject, behaviour=replace(subject.behaviour, by_file=never))
    budget = share_base(subject, DEFAULT)
    request = PlanRequest(lazy, budget, "auto", find_solver("auto", {}), Limits(limited(moves=20_000)), StockTarget())
    assert find(cheapest(request)).found
    with pytest.raises(AssertionError, match="it was made"):
        find(cheapest(replace(request, budget=subject.problem.resident + 1)))


@pytest.mark.parametrize("seed", [1, 3, 12, 14])
def test_it_leads_to_the_originals_kernels(seed: int) -> None:
    graph = ingest_content(fusing_model(seed).SerializeToString())
    made, own = default_graph(graph)
    assert own is not None
    assert made is not graph
    assert [made.inputs, made.outputs] == [graph.inputs, graph.outputs]
    shapes = shapes_of(graph) | shapes_of(made)
    assert kernels(graph, made.model, shapes).results() == own.results()


def test_weights_outside_of_the_file_stay_there(data: Path, tmp_path: Path) -> None:
    model = onnx.load(data / "torch_mlp.onnx")
    weight = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(_given(64)), "w_outside")
    model.graph.initializer.append(weight)
    out = model.graph.output[0]
    shape = [dim.dim_value for dim in out.type.tensor_type.shape.dim]
    made = onnx.helper.make_tensor_value_info("more", 1, shape or [64])
    model.graph.node.append(onnx.helper.make_node("Add", [out.name, "w_outside"], ["more"]))
    made.type.tensor_type.ClearField("shape")
    model.graph.output.append(onnx.helper.make_tensor_value_info("more", 1, None))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="m.data")
    graph = ingest(path)
    found, _ = default_graph(graph)
    kept = {tensor.name: tensor for tensor in found.model.graph.initializer}
    assert kept["w_outside"].data_location == onnx.TensorProto.EXTERNAL


def _given(size: int) -> onnx.TensorProto:
    return onnx.helper.make_tensor("w", 1, [size], [0.5] * size)
