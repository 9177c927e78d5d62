"""Loss scaling: gradients of the loss times a number, so that float16 keeps the small ones.

Invariant: what leaves the step is not scaled; `finite` says whether all gradients of the step are finite.
"""

from __future__ import annotations

import onnx

from remat_cli.gradient.tape import Tape
from remat_cli.gradient.tensor import Tensor
from remat_cli.model.step_parts import FINITE as FINITE

LOSS_SCALE = "loss_scale"  # an input of the step, with a default
FIRST_SCALE = 65536.0


class Scaling:
    def __init__(self, tape: Tape) -> None:
        self.scale = tape.declare(LOSS_SCALE, onnx.TensorProto.FLOAT, [])
        self._squares: Tensor | None = None

    def taken_off(self, gradient: Tensor) -> Tensor:
        """The gradient of the unscaled loss; it takes part in `finite`."""
        whole = gradient.cast(onnx.TensorProto.FLOAT) * (1 / self.scale)
        square = whole.sum_of_squares()
        self._squares = square if self._squares is None else self._squares + square
        return whole

    def finite(self) -> Tensor:
        """Whether all gradients are finite: x - x is zero only where x is finite."""
        assert self._squares is not None
        return (self._squares - self._squares).equals(0.0)
