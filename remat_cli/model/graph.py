"""A training graph as the rest of remat sees it: ops in file order, values with known sizes.

Invariant: every name is unique, every shape is static, `ops` stand in a runnable order, and each op's name can be used
to refer to it in a plan. Weights, constants and inputs are resident; everything else is written by exactly one op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: `dtype` is onnx.TensorProto's number, `bytes` what its elements occupy."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Op:
    """One node. `captures`: outer values that its subgraphs read; an input that is left out is ''. `reads`, `writes`:
    without those that are left out, kept because every pass over a graph asks for them."""

    name: str
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    node: onnx.NodeProto
    captures: tuple[str, ...] = ()
    backward: bool = False
    reads: tuple[str, ...] = field(init=False, repr=False, compare=False)
    writes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        read = dict.fromkeys((*self.inputs, *self.captures))
        read.pop("", None)
        object.__setattr__(self, "reads", tuple(read))
        written = self.outputs if "" not in self.outputs else tuple(name for name in self.outputs if name)
        object.__setattr__(self, "writes", written)


@dataclass(frozen=True, slots=True)
class Graph:
    """`model` holds the whole ONNX model with unique node names and static shapes; `path` is where it came from.

    `model` may lack the bytes of external tensors: they stay where they are until they are needed.
    """

    path: Path
    sha256: str
    model: onnx.ModelProto
    ops: tuple[Op, ...]
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    weights: tuple[str, ...]  # initializers and constants
    outputs: tuple[str, ...]
    dims: Mapping[str, int] = field(default_factory=dict)  # symbolic dimensions and their sizes
    opsets: Mapping[str, int] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()  # values that other data may make of other sizes
    by_data: frozenset[str] = frozenset()  # names of ops whose subgraphs other data may run more often
    in_place: Mapping[str, str] = field(default_factory=dict)  # outputs that are written over these inputs
    # functions in the file were replaced by their bodies: the runtime would do so in an order of its own
    expanded: bool = False
    told: int = 0  # how many values the file itself tells the types of

    def opset(self, domain: str = "") -> int:
        """The version of the ops of a domain."""
        return self.opsets.get(domain, 1 if domain else self.opsets.get("ai.onnx", 1))

    @property
    def resident(self) -> int:
        return sum(self.values[name].bytes for name in dict.fromkeys((*self.inputs, *self.weights)))
