"""The signature of an op: kind, version, attributes, types, shapes, and the small inputs that steer a kernel.

Invariant: ops with equal signatures run the same kernel on operands of the same size, so one measurement serves all.
Names never enter a signature, so a copy has its original's signature, or its original's `family` where it leaves
outputs out.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

ALIGNMENT = 256  # the arena hands out multiples of this
RECURRENT = ("GRU", "LSTM", "RNN")  # for unread states these ops allocate memory of their own
VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})  # no kernel: the result is its input


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. `constant`: the model holds it; `content`: its raw bytes where they decide what the op does."""

    dtype: int
    shape: tuple[int, ...]
    constant: bool = False
    content: bytes | None = None

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return math.ceil(self.count * bits(self.dtype) / 8)

    def value(self) -> np.ndarray | None:
        """The array itself, where it is part of the signature."""
        if self.content is None:
            return None
        held = onnx.TensorProto(data_type=self.dtype, dims=self.shape, raw_data=self.content)
        array: np.ndarray = numpy_helper.to_array(held)
        return array

    def __str__(self) -> str:
        return f"{onnx.TensorProto.DataType.Name(self.dtype).lower()}{list(self.shape)}"


@dataclass(frozen=True)
class OpSignature:
    """`attributes` are serialized AttributeProtos, sorted by name; operands left out are None."""

    op_type: str
    domain: str
    opset: int
    attributes: tuple[bytes, ...]
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]

    @cached_property
    def key(self) -> str:
        """A short name of the signature that is the same in every process and for every graph."""
        digest = hashlib.sha256(f"{self.domain}.{self.op_type}.{self.opset}".encode())
        for part in self.attributes:
            digest.update(hashlib.sha256(part).digest())
        for tensor in (*self.inputs, None, *self.outputs):
            digest.update(b"-" if tensor is None else repr((tensor.dtype, tensor.shape, tensor.constant)).encode())
            digest.update(b"" if tensor is None or tensor.content is None else hashlib.sha256(tensor.content).digest())
        return digest.hexdigest()[:20]

    @cached_property
    def family(self) -> str:
        """A short name that is the same for signatures that differ only in the outputs they leave out."""
        return replace(self, outputs=()).key

    @property
    def results(self) -> tuple[str, ...]:
        """Its outputs as text, empty where they are left out."""
        return tuple("" if tensor is None else str(tensor) for tensor in self.outputs)

    @cached_property
    def options(self) -> dict[str, Any]:
        """The attributes by name, as Python values."""
        held = [onnx.AttributeProto.FromString(data) for data in self.attributes]
        return {attribute.name: helper.get_attribute_value(attribute) for attribute in held}

    @property
    def given(self) -> tuple[Operand, ...]:
        return tuple(tensor for tensor in self.inputs if tensor is not None)

    @property
    def made(self) -> tuple[Operand, ...]:
        return tuple(tensor for tensor in self.outputs if tensor is not None)

    @property
    def opaque(self) -> bool:
        """Whether it holds a subgraph, which cannot be run apart from the values around it."""
        kinds = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        return any(onnx.AttributeProto.FromString(data).type in kinds for data in self.attributes)

    def __str__(self) -> str:
        kind = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{kind}({', '.join('-' if tensor is None else str(tensor) for tensor in self.inputs)})"


def attributes_of(node: onnx.NodeProto) -> tuple[bytes, ...]:
    """A node's attributes in canonical form."""
    held = []
    for attribute in sorted(node.attribute, key=lambda attribute: attribute.name):
        plain = onnx.AttributeProto()
        plain.CopyFrom(attribute)
        plain.ClearField("doc_string")
        held.append(plain.SerializeToString(deterministic=True))
    return tuple(held)


@cache
def bits(dtype: int) -> int:
    """How many bits an element occupies."""
    name = onnx.TensorProto.DataType.Name(dtype)
    if name.endswith(("INT4", "FLOAT4E2M1")):
        return 4
    if name.endswith("INT2"):
        return 2
    return 64 if name == "STRING" else helper.tensor_dtype_to_np_dtype(dtype).itemsize * 8


def padded(size: int) -> int:
    """The bytes that the arena hands out for so many."""
    return -(-size // ALIGNMENT) * ALIGNMENT
