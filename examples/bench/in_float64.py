"""A training graph of float32 computed in float64 by ONNX's reference: what it says, apart from how it rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from torch.nn import functional


class ConvTranspose(OpRun):
    """By PyTorch: ONNX's reference fails where there are groups."""

    op_domain = ""

    def _run(self, x: Any, w: Any, b: Any = None, **given: Any) -> tuple[np.ndarray]:
        places = w.ndim - 2
        pads, more = given.get("pads") or [0] * 2 * places, given.get("output_padding") or [0] * places
        strides, dilations = given.get("strides") or [1] * places, given.get("dilations") or [1] * places
        bias = None if b is None else torch.tensor(b)
        convolve = getattr(functional, f"conv_transpose{places}d")
        whole = convolve(torch.tensor(x), torch.tensor(w), bias, strides, 0, 0, given.get("group") or 1, dilations)
        padded = np.pad(whole.numpy(), [(0, 0), (0, 0), *((0, size) for size in more)])
        ends = zip(pads[:places], padded.shape[2:], pads[places:], strict=True)
        return (padded[(..., *(slice(before, size - after) for before, size, after in ends))],)


def in_float64(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Its outputs by name."""
    evaluator = ReferenceEvaluator(_widened(model), new_ops=[ConvTranspose])
    wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feeds.items()}
    return dict(zip(evaluator.output_names, evaluator.run(None, wide), strict=True))


def _widened(model: onnx.ModelProto) -> onnx.ModelProto:
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    stored = list(wide.graph.initializer)
    stored += [attribute.t for node in wide.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in stored:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in wide.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    return wide
