"""What onnxruntime fuses by default stays fused in a rewritten model: verify, on the real runtime, is the witness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from remat_cli.ingest import ingest
from remat_cli.planning.stock.graph import inner_values
from tests.cli.running import Command

DEEP = 600  # summed in blocks: a bias that is added first gives other bits than one that is added last


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    """Products and sums that become one Gemm, each activation read again on the way back."""
    nodes, inputs, grads = [], [("x", (64, DEEP))], []
    kept, last = [], "x"
    for layer in range(4):
        inputs += [(f"w{layer}", (DEEP, DEEP)), (f"b{layer}", (DEEP,))]
        nodes += [
            helper.make_node("MatMul", [last, f"w{layer}"], [f"p{layer}"], name=f"p{layer}"),
            helper.make_node("Add", [f"p{layer}", f"b{layer}"], [f"s{layer}"], name=f"s{layer}"),
            helper.make_node("Exp", [f"s{layer}"], [f"e{layer}"], name=f"e{layer}"),
            helper.make_node("Sin", [f"s{layer}"], [f"a{layer}"], name=f"a{layer}"),
        ]
        kept.append((f"e{layer}", f"s{layer}"))
        last = f"a{layer}"
    for layer in reversed(range(4)):
        nodes += [
            helper.make_node("Mul", [last, kept[layer][0]], [f"m{layer}"], name=f"m{layer}"),
            helper.make_node("Add", [f"m{layer}", kept[layer][1]], [f"g{layer}"], name=f"g{layer}"),
            helper.make_node("ReduceSum", [f"g{layer}", "axis"], [f"r{layer}"], name=f"r{layer}", keepdims=0),
        ]
        grads.append((f"r{layer}", (DEEP,)))
        last = f"g{layer}"
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in grads],
        [numpy_helper.from_array(np.array([0], dtype=np.int64), "axis")],
    )
    path = tmp_path / "dense.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_products_are_seen_to_be_fused(dense: Path) -> None:
    assert inner_values(ingest(dense, {})) == {f"p{layer}" for layer in range(4)}


def test_outputs_are_the_same_by_default(dense: Path, remat: Command) -> None:
    ran = remat(
        "solve",
        dense,
        "--runtime",
        "stock",
        "--budget",
        "6.9MB",
        "--work-limit",
        "5M",
        "--json",
        "-o",
        dense.with_name("dense.plan.json"),
    )
    assert ran.code == 0, ran.err
    assert ran.object["recomputed"] > 0
    ran = remat("verify", dense.with_name("dense.plan.json"), "--json")
    assert ran.code == 0, ran.err
    assert ran.object["session"] == "default"
    assert ran.object["default"]["differs"] == []
    assert ran.object["default"]["after"]["first"] <= ran.object["budget"] < ran.object["default"]["before"]["first"]
