"""Fusion groups as functions: clean models, the same bits, the same nodes once written out again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import onnx.inliner
import pytest

from remat_cli.planning.loading import load_subject
from remat_cli.rewrite import rewrite
from remat_cli.rewrite.functions import DOMAIN, with_functions
from solvers.methods.mincut.cuts import paper_cut
from solvers.methods.mincut.rebuild import Rebuilding
from solvers.schedule import evaluate
from tests.remat_cli.random_models import random_model
from tests.remat_cli.strict_session import feeds, session

MODELS = ("torch_mlp", "torch_cnn", "torch_unet_convt")


def rewritten(path: Path, *, recompute: bool = True) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The model of a plan, without functions and with them."""
    subject = load_subject(path, None, {})
    assert subject.graph is not None
    order = tuple(range(len(subject.problem.nodes)))
    if recompute:
        order = Rebuilding.of(subject.problem).order(paper_cut(subject.problem))
    plan, _ = evaluate(subject.problem, order)
    plain = rewrite(subject.graph, subject.problem, plan).model
    return plain, with_functions(subject.graph, plain)


def results(model: onnx.ModelProto) -> list[bytes]:
    return [array.tobytes() for array in session(model).run(None, feeds(model))]


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize("name", MODELS)
def test_clean_and_bit_for_bit_the_same(data: Path, name: str) -> None:
    plain, grouped = rewritten(data / f"{name}.onnx")
    onnx.checker.check_model(grouped, full_check=True)
    assert grouped.functions
    assert results(grouped) == results(plain)


@pytest.mark.parametrize("name", MODELS)
def test_written_out_again_it_is_the_same_graph(data: Path, name: str) -> None:
    plain, grouped = rewritten(data / f"{name}.onnx")
    again = onnx.inliner.inline_local_functions(grouped)
    assert kinds(again) == kinds(plain)
    assert [entry.name for entry in again.graph.output] == [entry.name for entry in plain.graph.output]


def test_groups_that_differ_in_nothing_share_a_function(data: Path) -> None:
    _, grouped = rewritten(data / "torch_unet_convt.onnx")
    calls = [node for node in grouped.graph.node if node.domain == DOMAIN]
    assert len(grouped.functions) < len(calls)
    assert {node.op_type for node in calls} == {function.name for function in grouped.functions}


@pytest.mark.parametrize("seed", range(12))
def test_random_models(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(random_model(seed), path)
    plain, grouped = rewritten(path, recompute=False)
    onnx.checker.check_model(grouped, full_check=True)
    assert results(grouped) == results(plain)
