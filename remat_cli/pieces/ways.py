"""How an op can be cut into pieces: along which axis of each operand, and how the pieces make the whole.

Invariant: a Way is about one op of known shapes. The pieces of its results, joined along their axes or summed up in
order, are the op's results; with `exact` they are the same bits: `tests/remat_cli/pieces/test_table.py` holds every
row to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import gcd, lcm
from typing import Any

import numpy as np

from remat_cli.model.graph import Op
from remat_cli.onnx_graph.attributes import attribute

Range = tuple[int, int]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """The axis along which an operand is cut.

    `local`: it holds indices that count from where the piece begins, so that pieces are no slices of the whole.
    """

    axis: int
    local: bool = False


@dataclass(frozen=True, slots=True)
class Slide:
    """A window that slides along the axis of input 0 and makes output 0; `transposed`: the other way around."""

    kernel: int
    stride: int
    dilation: int
    before: int  # padding
    size: int  # of the padded side
    pads: tuple[int, ...]  # of all axes, made explicit
    transposed: bool = False

    @property
    def reach(self) -> int:
        """Places that a window spans."""
        return (self.kernel - 1) * self.dilation + 1

    def reads(self, made: Range) -> Range:
        """The places of the input that these places of the output are made from."""
        start, stop = made
        if self.transposed:
            first = -((self.reach - 1 - self.before - start) // self.stride)
            first = min(first, (start + self.before) // self.stride)
            return max(0, first), min(self.size, (stop - 1 + self.before) // self.stride + 1)
        first = start * self.stride - self.before
        return max(0, first), min(self.size, (stop - 1) * self.stride - self.before + self.reach)

    def padding(self, made: Range) -> tuple[int, int]:
        """The padding of the piece that makes these places of the output; below zero at the end: places to add."""
        start, stop = made
        first, last = self.reads(made)
        if self.transposed:
            begins = first * self.stride - self.before
            ends = (last - 1) * self.stride - self.before + self.reach
            return start - begins, ends - stop
        needed = start * self.stride - self.before, (stop - 1) * self.stride - self.before + self.reach
        return first - needed[0], max(0, needed[1] - last)


@dataclass(frozen=True, slots=True)
class Total:
    """How partial results make the whole: by `op`, in the order of the pieces.

    `through`: the input that takes what there is so far, where the op itself adds to it. `runs`: the op type of a
    piece, where it is another; `over`: what the sum is divided by at the end.
    """

    op: str = "Add"
    through: int | None = None
    runs: str = ""
    over: int = 1


@dataclass(frozen=True, slots=True)
class Way:
    """`inputs`, `outputs`: the axis of each; None for one that is read whole, left out, or summed up by `total`."""

    name: str
    inputs: tuple[AlongAxis | None, ...]
    outputs: tuple[AlongAxis | None, ...]
    total: Total | None = None
    slide: Slide | None = None
    exact: bool = True
    least: int = 1  # length of a piece: kernels for a single row may be others
    carries: bool = False  # what is local in the input is so in the output


@dataclass(frozen=True, slots=True)
class Call:
    """An op with the shapes of its operands, None where they are left out, the types of what it reads, and its constant
    small inputs by place."""

    op: Op
    reads: tuple[Shape | None, ...]
    makes: tuple[Shape | None, ...]
    dtypes: tuple[int, ...]
    constants: Mapping[int, np.ndarray]
    opset: int

    def get(self, name: str, default: Any = None) -> Any:
        return attribute(self.op.node, name, default)

    def given(self, place: int) -> bool:
        return place < len(self.reads) and self.reads[place] is not None

    def read(self, place: int) -> Shape:
        shape = self.reads[place]
        assert shape is not None
        return shape

    @property
    def made(self) -> Shape:
        """The first output's shape."""
        shape = self.makes[0]
        assert shape is not None
        return shape

    def same(self, axis: int | None, *places: int) -> tuple[AlongAxis | None, ...]:
        """Inputs cut along this axis at these places, and whole at all others."""
        return tuple(
            AlongAxis(axis) if axis is not None and place in places and self.given(place) else None
            for place in range(len(self.reads))
        )

    def results(self, axis: int, *places: int) -> tuple[AlongAxis | None, ...]:
        """Outputs cut along this axis; all of them where no places are named."""
        wanted = places or range(len(self.makes))
        return tuple(
            AlongAxis(axis) if shape is not None and place in wanted else None for place, shape in enumerate(self.makes)
        )


Row = Callable[[Call], Iterable[Way]]


def grain(out: int, reads: Iterable[int]) -> int:
    """What a range of the output begins and ends at multiples of, for ranges of inputs of these sizes to be whole."""
    return lcm(*(out // gcd(out, size) for size in reads), 1)


def scaled(part: Range, out: int, size: int) -> Range:
    """The range of another operand that goes with this one of the output."""
    return part[0] * size // out, part[1] * size // out


def widened(part: Range, step: int, size: int) -> Range:
    """The least range of multiples of the step around it."""
    return part[0] // step * step, min(size, -(-part[1] // step) * step)


def hull(one: Range | None, other: Range) -> Range:
    return other if one is None else (min(one[0], other[0]), max(one[1], other[1]))
