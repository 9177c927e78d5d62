"""Sizes and contents that other data may change, beside those that were stated for this data.

Invariant: a size or content that is not here is the same for all data, as far as shape inference can tell.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import onnx

from remat_cli.ingest.runtime_types import Partial
from remat_cli.onnx_graph.walk import captures


@dataclass(slots=True)
class Loose:
    """`sizes`: types whose dimensions may change; `ranks`: those whose rank may too; `contents`: constants that were
    computed from such sizes."""

    sizes: dict[str, Partial] = field(default_factory=dict)
    ranks: set[str] = field(default_factory=set)
    contents: set[str] = field(default_factory=set)

    def copy(self) -> Loose:
        return Loose(dict(self.sizes), set(self.ranks), set(self.contents))

    def reaches(self, node: onnx.NodeProto) -> bool:
        if not self.sizes and not self.contents:
            return False
        return any(name in self.sizes or name in self.contents for name in (*node.input, *captures(node)))

    def unranks(self, node: onnx.NodeProto) -> bool:
        """Whether it reads a value whose rank may change, so that nothing is known of what it makes."""
        return not self.ranks.isdisjoint((*node.input, *captures(node)))

    def types(self, types: Mapping[str, Partial]) -> Mapping[str, Partial]:
        return ChainMap(self.sizes, cast(dict[str, Partial], types))

    def constants(self, node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = (*node.input, *captures(node))
        return {name: constants[name] for name in names if name in constants and name not in self.contents}

    def settle(self, name: str, here: tuple[int, tuple[int, ...]], always: Partial | None) -> None:
        """Record which part of a value's type holds with this data only."""
        dtype, shape = here
        sizes = always[1] if always and len(always[1]) == len(shape) else (None,) * len(shape)
        if None in sizes:
            self.sizes[name] = dtype, sizes
