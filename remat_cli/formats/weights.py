"""Where the weights of a model lie in a file beside it, for whoever maps them: a table that programs keep without ONNX.

Invariant: the table is of plain numbers and names, so it goes through JSON and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

KEPT_BYTES = 8 << 20  # that stay in memory, beside those of the op that runs


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """Where a model's tensor lies in the file. `kind`: its type's number in ONNX; `width`: the bytes of an element."""

    name: str
    kind: int
    width: int
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return self.width * prod(self.shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """`kept`: the bytes that stay in memory."""

    file: str
    kept: int
    stored: tuple[StoredWeight, ...]

    @staticmethod
    def of(said: Sequence[Any]) -> Weights:
        """What `list` of the fields gave, after JSON."""
        file, kept, stored = said
        return Weights(file, kept, tuple(map(_stored, stored)))


def _stored(said: Sequence[Any]) -> StoredWeight:
    name, kind, width, shape, offset = said
    return StoredWeight(name, kind, width, tuple(shape), offset)
