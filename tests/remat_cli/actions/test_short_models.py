"""What models give is judged by what they would give in 32 bits, or by other kernels; a witness of NumPy's is of 64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from remat_cli.actions.shrinking.truth import witness
from remat_cli.actions.shrinking.ways import compared, judged
from remat_cli.checking.child import STRICT, UserProgram
from remat_cli.ingest import ingest


@pytest.mark.parametrize(("off", "near"), [(1.9, True), (2.1, False)])
def test_outputs_may_be_off_as_much_as_the_model_rounds_itself(off: float, near: bool) -> None:
    true = np.linspace(-1, 1, 1001, dtype=np.float32)
    before = true.astype(np.float16).astype(np.float32)
    own = float(np.abs(before - true).max())
    after = np.where(np.arange(1001) == 500, true + np.float32(off * own), before)
    found = judged(compared([before], [after]), [true], [before], [after])
    assert (found.same, found.near) == (False, near)
    assert found.own == pytest.approx(own)


def test_the_next_number_of_16_bits_is_near_where_no_other_is_nearer() -> None:
    true = np.array([1 + 2**-11, 0.5], np.float32)  # halfway between two of them
    one, other = np.array([1, 0.5], np.float16), np.array([1 + 2**-10, 0.5], np.float16)
    assert not compared([one], [other]).near
    assert judged(compared([one], [other]), [true], [one], [other]).near


def short(dtype: int = TensorProto.FLOAT16) -> onnx.ModelProto:
    """A model that computes in 16 bits, in a branch as well, of inputs of both kinds."""
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(helper.tensor_dtype_to_np_dtype(dtype))
    half = numpy_helper.from_array(np.array(0.5, weight.dtype), "half")
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["half"], value=half), helper.make_node("Mul", ["h", "half"], ["scaled"])],
        "branch",
        [],
        [helper.make_tensor_value_info("scaled", dtype, [4, 64])],
    )
    nodes = [
        helper.make_node("Cast", ["x"], ["short"], to=dtype),
        helper.make_node("Add", ["short", "z"], ["sum"]),
        helper.make_node("MatMul", ["sum", "w"], ["h"]),
        helper.make_node("If", ["yes"], ["chosen"], then_branch=inner, else_branch=inner),
        helper.make_node("Cast", ["chosen"], ["y"], to=TensorProto.FLOAT),
    ]
    inputs = [helper.make_tensor_value_info(name, kind, [4, 64]) for name, kind in (("x", 1), ("z", dtype))]
    inputs.append(helper.make_tensor_value_info("yes", TensorProto.BOOL, []))
    outputs = [helper.make_tensor_value_info(name, kind, [4, 64]) for name, kind in (("y", 1), ("h", dtype))]
    graph = helper.make_graph(nodes, "short", inputs, outputs, [numpy_helper.from_array(weight, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_what_was_rounded_to_16_bits_is_not(dtype: int, tmp_path: Path) -> None:
    path, feeds, rng = tmp_path / "m.onnx", tmp_path / "feeds.npz", np.random.default_rng(1)
    onnx.save(short(dtype), path)
    x, z = (rng.standard_normal((4, 64)).astype(np.float32) for _ in range(2))
    np.savez(feeds, x=x, z=z.astype(np.float16), yes=np.array(True))
    written = witness(path, ingest(path), feeds, tmp_path)
    assert written.model != path
    with np.load(written.feeds) as wide:
        assert wide["z"].dtype == np.float32
        y, h = onnxruntime.InferenceSession(str(written.model)).run(None, dict(wide))
    weight = numpy_helper.to_array(onnx.load(path).graph.initializer[0]).astype(np.float64)
    right = (x + z.astype(np.float16).astype(np.float64)) @ weight
    np.testing.assert_allclose(h, right, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(y, right / 2, rtol=1e-4, atol=1e-4)


def test_a_model_of_32_bits_is_held_against_its_plainest_kernels(tmp_path: Path) -> None:
    path, feeds = tmp_path / "m.onnx", tmp_path / "feeds.npz"
    assert witness(path, None, feeds, tmp_path) == UserProgram(path, STRICT)
    model = short()
    del model.graph.node[:], model.graph.output[:], model.graph.initializer[:]
    model.graph.node.append(helper.make_node("Neg", ["x"], ["y"]))
    model.graph.output.append(helper.make_tensor_value_info("y", 1, [4, 64]))
    onnx.save(model, path)
    assert witness(path, ingest(path), feeds, tmp_path) == UserProgram(path, STRICT)
