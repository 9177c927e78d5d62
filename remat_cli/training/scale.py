"""The number that a float16 step's loss is scaled by, found as PyTorch's GradScaler finds it.

Invariant: a step whose gradients are not all finite is not taken; the next one is scaled by half as much.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from remat_cli.errors import BadInput
from remat_cli.gradient.scaling import FIRST_SCALE

PATIENCE_STEPS = 2000  # steps taken in a row before the scale is doubled
LEAST_SCALE = 2.0**-10  # smaller scales help nobody: the gradients are no numbers themselves


@dataclass(slots=True)
class LossScale:
    value: float = FIRST_SCALE
    taken: int = 0  # since the scale was changed
    skipped: int = 0

    def heard(self, finite: bool) -> None:
        """Adapt the scale to the result of a step."""
        if finite:
            self.taken += 1
            if self.taken % PATIENCE_STEPS == 0:
                self.value *= 2
            return
        if self.value <= LEAST_SCALE:
            raise BadInput(
                f"the gradients are not finite at a loss scale of {self.value:g} either, after {self.skipped} steps "
                "that were left out; look at the batch and the learning rate"
            )
        self.value, self.taken, self.skipped = self.value / 2, 0, self.skipped + 1

    def written(self) -> np.ndarray:
        return np.array(astuple(self), np.float64)

    @classmethod
    def read(cls, numbers: np.ndarray) -> LossScale:
        value, taken, skipped = numbers
        return cls(float(value), int(taken), int(skipped))
