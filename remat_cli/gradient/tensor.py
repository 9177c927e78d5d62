"""A value on a tape, with arithmetic: what gradient rules are written in.

Invariant: an operation on tensors emits at most one computation per line of arithmetic, and none where it would change
nothing (a reshape to the same shape, a product with one).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    from remat_cli.gradient.tape import Tape


@dataclass(frozen=True, slots=True)
class Tensor:
    tape: Tape
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tape.shape(self.name)

    @property
    def dtype(self) -> int:
        return self.tape.dtype(self.name)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def like(self, value: Tensor | float) -> Tensor:
        """A number as a scalar of this tensor's type."""
        return value if isinstance(value, Tensor) else self.tape.constant(value, self.dtype)

    def __add__(self, other: Tensor | float) -> Tensor:
        return self if other == 0 else self.tape.op("Add", self, self.like(other))

    def __radd__(self, other: float) -> Tensor:
        return self + other

    def __sub__(self, other: Tensor | float) -> Tensor:
        return self if other == 0 else self.tape.op("Sub", self, self.like(other))

    def __rsub__(self, other: float) -> Tensor:
        return self.tape.op("Sub", self.like(other), self)

    def __mul__(self, other: Tensor | float) -> Tensor:
        return self if other == 1 else self.tape.op("Mul", self, self.like(other))

    def __rmul__(self, other: float) -> Tensor:
        return self * other

    def __truediv__(self, other: Tensor | float) -> Tensor:
        return self if other == 1 else self.tape.op("Div", self, self.like(other))

    def __rtruediv__(self, other: float) -> Tensor:
        return self.tape.op("Reciprocal", self) if other == 1 else self.tape.op("Div", self.like(other), self)

    def __neg__(self) -> Tensor:
        return self.tape.op("Neg", self)

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.tape.op("MatMul", self, other)

    def __gt__(self, other: Tensor | float) -> Tensor:
        return self.tape.op("Greater", self, self.like(other))

    def __lt__(self, other: Tensor | float) -> Tensor:
        return self.tape.op("Less", self, self.like(other))

    def equals(self, other: Tensor | float) -> Tensor:
        return self.tape.op("Equal", self, self.like(other))

    def where(self, yes: Tensor | float, no: Tensor | float) -> Tensor:
        """`yes` where this condition holds, `no` elsewhere. One of both must be a tensor."""
        model = yes if isinstance(yes, Tensor) else no
        assert isinstance(model, Tensor)
        return self.tape.op("Where", self, model.like(yes), model.like(no))

    def apply(self, kind: str, **attributes: object) -> Tensor:
        """A node of one input."""
        return self.tape.op(kind, self, **attributes)

    def cast(self, dtype: int) -> Tensor:
        return self if dtype == self.dtype else self.tape.op("Cast", self, to=dtype)

    def reshape(self, *shape: int) -> Tensor:
        """Exact sizes, or one -1."""
        if -1 in shape:
            rest = -math.prod(shape)
            shape = tuple(self.size // rest if size == -1 and rest else size for size in shape)
        source = self.tape.reshaped.get(self.name, self)
        if shape in (self.shape, source.shape):
            return self if shape == self.shape else source
        found = self.tape.op("Reshape", source, self.tape.integers(shape))
        self.tape.reshaped[found.name] = source
        return found

    def transpose(self, *order: int) -> Tensor:
        return self if order == tuple(range(self.rank)) else self.tape.op("Transpose", self, perm=list(order))

    def swap(self, one: int, other: int) -> Tensor:
        """The tensor with two axes exchanged."""
        order = list(range(self.rank))
        order[one], order[other] = order[other], order[one]
        return self.transpose(*order)

    @property
    def transposed(self) -> Tensor:
        """The tensor as a stack of matrices, each transposed."""
        return self.swap(-1, -2)

    def expand(self, *shape: int) -> Tensor:
        return self if shape == self.shape else self.tape.op("Expand", self, self.tape.integers(shape))

    def reduce(self, kind: str, axes: Sequence[int], keep: bool = True) -> Tensor:
        if not axes:
            return self
        return self.tape.op(kind, self, self.tape.integers(list(axes)), keepdims=int(keep))

    def sum(self, axes: Sequence[int], keep: bool = True) -> Tensor:
        return self.reduce("ReduceSum", axes, keep)

    def mean(self, axes: Sequence[int], keep: bool = True) -> Tensor:
        return self.reduce("ReduceMean", axes, keep)

    def sum_of_squares(self) -> Tensor:
        return self.reduce("ReduceSumSquare", range(self.rank), keep=False) if self.rank else self * self

    def sum_to(self, shape: tuple[int, ...]) -> Tensor:
        """Undo a broadcast from `shape`, in one reduction."""
        if shape == self.shape:
            return self
        lead = self.rank - len(shape)
        inner = [lead + axis for axis, size in enumerate(shape) if size == 1 and self.shape[lead + axis] != 1]
        return self.sum([*range(lead), *inner], keep=False).reshape(*shape)

    def slice(self, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
        if (start, stop, step) == (0, self.shape[axis], 1):
            return self
        integers = self.tape.integers
        return self.tape.op("Slice", self, integers([start]), integers([stop]), integers([axis]), integers([step]))

    def pad(self, before: Sequence[int], after: Sequence[int]) -> Tensor:
        """The tensor with zeros around it."""
        if not any((*before, *after)):
            return self
        return self.tape.op("Pad", self, self.tape.integers([*before, *after]))

    def zeros(self, *shape: int) -> Tensor:
        """Zeros of this tensor's type, made when they are needed rather than stored."""
        value = onnx.numpy_helper.from_array(self.tape.constants[self.tape.constant([0], self.dtype).name])
        return self.tape.op("ConstantOfShape", self.tape.integers(shape), value=value)
