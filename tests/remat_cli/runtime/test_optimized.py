"""A model as onnxruntime writes it takes what the model took."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import remat_cli as remat
from remat_cli.runtime.optimized import optimize


def test_constants_that_were_merged_are_no_inputs() -> None:
    """In a file of IR version 3 constants are inputs as well, and onnxruntime leaves those that it merges."""
    zero, one, axes, other = (
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [1], [number]))
        for name, number in (("zero", 0), ("one", 1), ("axes", 0), ("other", 0))
    )
    cut = helper.make_node("Slice", ["x", "zero", "one", "axes"], ["first"])
    squeezed = helper.make_node("Squeeze", ["first", "other"], ["y"])
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2, 3]), ("y", [3]))
    )
    graph = helper.make_graph([zero, one, axes, cut, other, squeezed], "merged", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=3)

    made = optimize(model.SerializeToString(), Path())
    stored = {tensor.name for tensor in made.graph.initializer}
    assert [given.name for given in made.graph.input if given.name not in stored] == ["x"]

    plan = remat.solve(model, budget="100%", runtime="stock", work_limit=1000, cache=False)
    fed = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert remat.session(plan).run(None, {"x": fed})[0].tolist() == fed[0].tolist()
