"""Signatures written shortly: shapes are float32 unless an array is given, which is then a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from profiles.signature import Operand, OpSignature, attributes_of

Spelled = tuple[int, ...] | np.ndarray | Operand | None


def floats(*shape: int) -> Operand:
    return Operand(TensorProto.FLOAT, shape)


def whole(*shape: int) -> Operand:
    return Operand(TensorProto.INT64, shape)


def truth(*shape: int) -> Operand:
    return Operand(TensorProto.BOOL, shape)


def constant(array: Any, dtype: Any = np.int64) -> Operand:
    held = np.asarray(array, dtype)
    return Operand(helper.np_dtype_to_tensor_dtype(held.dtype), held.shape, True, held.tobytes())


def signature(
    op: str,
    inputs: list[Operand | None],
    outputs: list[Operand | None],
    opset: int = 20,
    domain: str = "",
    **attributes: Any,
) -> OpSignature:
    node = helper.make_node(op, [], [], **attributes)
    return OpSignature(op, domain, opset, attributes_of(node), tuple(inputs), tuple(outputs))
