"""Signatures written shortly: shapes are float32 unless an array is given, which is then a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from profiles.signature import Signature, Tensor, attributes_of

Operand = tuple[int, ...] | np.ndarray | Tensor | None


def floats(*shape: int) -> Tensor:
    return Tensor(TensorProto.FLOAT, shape)


def whole(*shape: int) -> Tensor:
    return Tensor(TensorProto.INT64, shape)


def truth(*shape: int) -> Tensor:
    return Tensor(TensorProto.BOOL, shape)


def constant(array: Any, dtype: Any = np.int64) -> Tensor:
    held = np.asarray(array, dtype)
    return Tensor(helper.np_dtype_to_tensor_dtype(held.dtype), held.shape, True, held.tobytes())


def signature(
    op: str,
    inputs: list[Tensor | None],
    outputs: list[Tensor | None],
    opset: int = 20,
    domain: str = "",
    **attributes: Any,
) -> Signature:
    node = helper.make_node(op, [], [], **attributes)
    return Signature(op, domain, opset, attributes_of(node), tuple(inputs), tuple(outputs))
