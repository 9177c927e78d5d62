"""Weights that a session reads where they lie in a file, and that are let go of while it runs: the kernel keeps them
where it has room, and reads them again where it had none.

Invariant: they are only read, and stay mapped for as long as the session may read them.
"""

from __future__ import annotations

from typing import Any

from remat_cli.formats.weights import StoredWeight, Weights


class MappedWeights:
    """The file's memory, and what sessions take of it."""

    def __init__(self, weights: Weights) -> None:
        import numpy as np

        self.kept = weights.kept
        self.memory = np.memmap(weights.file, np.uint8, "r")
        self.values = [(one.name, self._value(one)) for one in weights.stored]

    def _value(self, one: StoredWeight) -> Any:
        import onnxruntime

        part = self.memory[one.offset : one.offset + one.bytes].view(f"u{one.width}").reshape(one.shape)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(part, one.kind)

    def add_to(self, options: Any) -> None:
        """Have a session with these options read them here."""
        for name, value in self.values:
            options.add_initializer(name, value)
