"""Gradients of ops that only move elements, and the window of a convolution or pooling: kernel, strides, dilations and
pads made explicit.

Invariant: nothing is computed but sums where an element was used more than once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from remat_cli.gradient.tape import Taped
from remat_cli.gradient.tensor import Tensor
from remat_cli.model.windows import explicit_pads


@dataclass(frozen=True, slots=True)
class Window:
    size: tuple[int, ...]  # the size of the padded side: a convolution's input
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def pads(self) -> list[int]:
        return [*self.before, *self.after]

    @property
    def reach(self) -> tuple[int, ...]:
        """The distance between the kernel's first and last element."""
        return tuple(d * (k - 1) for d, k in zip(self.dilations, self.kernel))

    def left_over(self, out: tuple[int, ...]) -> list[int]:
        """Rows at the end that no window touches."""
        spans = zip(self.size, out, self.strides, self.before, self.after, self.reach)
        return [x - ((y - 1) * s - before - after + reach + 1) for x, y, s, before, after, reach in spans]

    def untouched(self) -> bool:
        return not any(self.pads)

    @property
    def pointwise(self) -> bool:
        """One element at a time, without padding."""
        return self.untouched() and set(self.kernel) == {1}


def window(op: Taped, size: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window of an op that slides over `size`."""
    rank = len(size)
    strides = tuple(op.get("strides") or [1] * rank)
    dilations = tuple(op.get("dilations") or [1] * rank)
    if min((*kernel, *strides, *dilations), default=1) < 1 or {len(kernel), len(strides), len(dilations)} != {rank}:
        raise op.refuse(f"a window of {list(kernel)} by strides {list(strides)} cannot slide over {list(size)}")
    pads = explicit_pads(op.get("auto_pad", ""), op.get("pads"), size, kernel, strides, dilations)
    return Window(size, kernel, strides, dilations, pads[:rank], pads[rank:])


def _transpose(op: Taped, dy: Tensor) -> Tensor:
    order = op.get("perm") or list(reversed(range(op.x.rank)))
    return dy.transpose(*(int(axis) for axis in np.argsort(order)))


def _concat(op: Taped, dy: Tensor) -> list[Tensor | None]:
    axis = op.get("axis") % dy.rank
    ends = list(accumulate(op.input(i).shape[axis] for i in range(len(op.inputs))))
    return [dy.slice(axis, end - op.input(i).shape[axis], end) if op.needs[i] else None for i, end in enumerate(ends)]


def _split(op: Taped, *dys: Tensor | None) -> Tensor:
    """The parts joined; a part without a gradient is zeros, and neighbouring parts of zeros are made as one."""
    axis, shape = op.get("axis", 0) % op.x.rank, op.x.shape
    sizes = op.saved.get("sizes") or [op.output(i).shape[axis] for i in range(len(dys))]
    given = next(dy for dy in dys if dy is not None)
    parts: list[Tensor] = []
    missing = 0
    for dy, size in [*zip(dys, sizes), (given, 0)]:
        if dy is None:
            missing += size
            continue
        if missing:
            parts.append(given.zeros(*shape[:axis], missing, *shape[axis + 1 :]))
            missing = 0
        if size:
            parts.append(dy.reshape(*shape[:axis], size, *shape[axis + 1 :]))
    return op.tape.op("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _slice(op: Taped, dy: Tensor) -> Tensor:
    """Zeros around what was taken, and between where it was taken in steps."""
    if not dy.size:
        return dy.zeros(*op.x.shape)
    starts, ends = (op.array(i, what).tolist() for i, what in ((1, "starts"), (2, "ends")))
    axes = op.array(3, "axes").tolist() if op.optional(3) else range(len(starts))
    steps = op.array(4, "steps").tolist() if op.optional(4) else [1] * len(starts)
    before, after = [0] * op.x.rank, [0] * op.x.rank
    for axis, start, end, step in zip(axes, starts, ends, steps):
        axis %= op.x.rank
        taken = range(*slice(start, _open(end, step, op.x.shape[axis]), step).indices(op.x.shape[axis]))
        if step < 0:
            dy = dy.slice(axis, -1, -(2**62), -1)
            taken = taken[::-1]
        if abs(step) > 1 and len(taken) > 1:
            dy = _space_out(dy, axis, abs(step))
        before[axis], after[axis] = taken[0], op.x.shape[axis] - taken[-1] - 1
    return dy.pad(before, after)


def _open(end: int, step: int, size: int) -> int | None:
    """ONNX clamps a far negative end to before the first element, which Python writes None."""
    return None if step < 0 and end < -size else end


def _space_out(dy: Tensor, axis: int, step: int) -> Tensor:
    """With step - 1 zeros after each element, but the last."""
    shape = dy.shape
    apart = dy.reshape(*shape[: axis + 1], 1, *shape[axis + 1 :])
    after = [0] * apart.rank
    after[axis + 1] = step - 1
    spaced = apart.pad([0] * apart.rank, after).reshape(*shape[:axis], shape[axis] * step, *shape[axis + 1 :])
    return spaced.slice(axis, 0, (shape[axis] - 1) * step + 1)


def _pad(op: Taped, dy: Tensor) -> Tensor:
    mode = op.get("mode", "constant")
    pads = op.array(1, "pads").tolist()
    axes = op.array(3, "axes").tolist() if op.optional(3) else list(range(op.x.rank))
    half = len(axes)
    if len(op.needs) > 2 and op.needs[2]:
        raise op.refuse("its fill value is wanted as a parameter; choose others with --wrt")
    for axis, before, after in zip(axes, pads[:half], pads[half:]):
        axis %= op.x.rank
        size = op.x.shape[axis]
        if mode == "constant" or (before <= 0 and after <= 0):
            dy = dy.slice(axis, max(before, 0), max(before, 0) + min(size, size + before, size + after, dy.shape[axis]))
            lead, trail = [0] * op.x.rank, [0] * op.x.rank
            lead[axis], trail[axis] = max(-before, 0), max(-after, 0)
            dy = dy.pad(lead, trail)
        else:
            dy = along(dy, axis, _sources(size, before, after, mode).T)
    return dy


def _sources(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """One row for each padded element: which element it copies."""
    kept = np.arange(size)[max(-before, 0) : size - max(-after, 0)]
    how: Any = mode
    index = np.pad(kept, (max(before, 0), max(after, 0)), mode=how)
    return np.asarray(np.eye(size)[index])


def along(tensor: Tensor, axis: int, matrix: np.ndarray) -> Tensor:
    """The product of a constant matrix with one axis of a tensor."""
    factor = tensor.tape.constant(matrix, tensor.dtype)
    if axis == tensor.rank - 1:
        return tensor @ tensor.tape.constant(matrix.T, tensor.dtype)
    if axis == tensor.rank - 2:
        return factor @ tensor
    shape = tensor.shape
    flat = tensor.reshape(*shape[:axis], shape[axis], -1)
    return (factor @ flat).reshape(*shape[:axis], matrix.shape[0], *shape[axis + 1 :])


def _tile(op: Taped, dy: Tensor) -> Tensor:
    repeats = op.array(1, "repeats").tolist()
    apart = [part for pair in zip(repeats, op.x.shape) for part in pair]
    return dy.reshape(*apart).sum(range(0, 2 * op.x.rank, 2), keep=False)


def _depth_to_space(op: Taped, dy: Tensor) -> Tensor:
    block = op.get("blocksize")
    n, c, h, w = op.x.shape
    parts = dy.reshape(n, c // block**2, h, block, w, block)
    order = (0, 3, 5, 1, 2, 4) if op.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.transpose(*order).reshape(*op.x.shape)


RULES: dict[str, Any] = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), lambda op, dy: dy.reshape(*op.x.shape)),
    "Identity": lambda op, dy: dy,
    "Transpose": _transpose,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Expand": lambda op, dy: dy,
    "Tile": _tile,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": lambda op, dy: op.tape.op("DepthToSpace", dy, blocksize=op.get("blocksize"), mode="DCR"),
}
