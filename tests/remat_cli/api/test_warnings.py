"""A program hears of notes as warnings of remat's own category, at its own line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import remat_cli as remat
from remat_cli.zoo.build import build


def test_solve_warns_of_what_its_plan_notes(data: Path) -> None:
    with pytest.warns(remat.RematWarning, match="The costs are estimates") as heard:
        plan = remat.solve(data / "torch_cnn.onnx", budget="85%", work_limit=1000, cache=False)
    assert heard[0].filename == __file__
    assert str(heard[0].message) in plan.notes


def test_grad_warns_of_what_it_notes() -> None:
    """A Dropout that its file has in inference mode."""
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Dropout", ["y"], ["logits"])]
    x, logits = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", "logits"))
    graph = helper.make_graph(nodes, "dropped", [x], [logits], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.warns(remat.RematWarning, match="Dropout") as heard:
        remat.grad(model)
    assert heard[0].filename == __file__


def test_what_has_no_notes_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", remat.RematWarning)
        remat.grad(build("mlp"))
