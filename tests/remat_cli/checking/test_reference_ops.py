"""Ops that stand in for the reference's own: the same results, but at once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from remat_cli.onnx_graph.reference_ops import OPS


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_are_scattered_as_the_reference_does_it(reduction: str, axis: int) -> None:
    random = np.random.default_rng(0)
    data = random.standard_normal((4, 5, 6))
    indices = random.permuted(np.broadcast_to(np.arange(-2, 2).reshape(4, 1, 1), (4, 3, 4)), axis=0)
    if axis:
        indices = np.moveaxis(indices, 0, axis)
    updates = random.standard_normal(indices.shape)
    _agree("ScatterElements", [data, indices, updates], axis=axis, reduction=reduction)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_are_gathered_as_the_reference_does_it(axis: int) -> None:
    random, shape = np.random.default_rng(0), [3, 4, 5]
    data = random.standard_normal(shape)
    shape[axis] = 2
    _agree("GatherElements", [data, random.integers(-3, 3, shape)], axis=axis)


def _agree(kind: str, inputs: list[np.ndarray], **attributes: object) -> None:
    """Compare the op in both evaluators. Here all is small enough for the reference's own."""
    names = [f"in{place}" for place in range(len(inputs))]
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    node = helper.make_node(kind, names, ["out"], **attributes)
    result = helper.make_tensor_value_info("out", TensorProto.DOUBLE, None)
    model = helper.make_model(
        helper.make_graph([node], "one", given, [result]), opset_imports=[helper.make_opsetid("", 18)]
    )
    feeds = dict(zip(names, inputs, strict=True))
    (ours,), (theirs,) = (ReferenceEvaluator(model, new_ops=ops).run(None, feeds) for ops in (OPS, None))
    np.testing.assert_array_equal(ours, theirs)
