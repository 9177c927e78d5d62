"""A node with the types of its inputs, as shape rules see it, and the simplest of these rules.

Invariant: a rule gives one (type, shape) for each output in the op's signature, None where it cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from remat_cli.onnx_graph.attributes import attribute

Type = tuple[int, tuple[int, ...]]
Types = list[Type | None]


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node with the types and known contents of its inputs."""

    node: onnx.NodeProto
    types: Mapping[str, Type]
    constants: Mapping[str, np.ndarray]
    makers: Mapping[str, onnx.NodeProto]

    def has(self, place: int) -> bool:
        return place < len(self.node.input) and bool(self.node.input[place])

    def type(self, place: int) -> Type:
        if not self.has(place):
            raise ValueError(f"input {place} is missing")
        return self.types[self.node.input[place]]

    def like(self, place: int) -> Type | None:
        return self.type(place) if self.has(place) else None

    def dtype(self, place: int) -> int:
        return self.type(place)[0]

    def shape(self, place: int) -> tuple[int, ...]:
        return self.type(place)[1]

    def constant(self, place: int) -> tuple[int, ...] | None:
        found = self.constants.get(self.node.input[place])
        return None if found is None else tuple(int(x) for x in found.ravel())

    def attribute(self, name: str, default: Any) -> Any:
        return attribute(self.node, name, default)


Rule = Callable[[TypedNode], Types]


def like(*places: int) -> Rule:
    """A rule: each output has the type and shape of one input."""
    return lambda call: [call.like(place) for place in places]


def shape_from(place: int, data: int) -> Rule:
    """A rule: the one output has the shape that a constant input contains."""

    def rule(call: TypedNode) -> Types:
        sizes = call.constant(place)
        return [None if sizes is None else (call.dtype(data), sizes)]

    return rule
