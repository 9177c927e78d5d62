"""Joins slices of one value that lie side by side, so that their gradients are concatenated, not padded and added.

A loop over a sequence reads its steps one by one. Padding each step's gradient to the whole sequence and adding them
takes quadratic time and memory.

Invariant: every step occurs once, alone or in a joined one. A joined step stands where the first of its members stood:
its readers come later, and its input's maker before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from remat_cli.gradient.tape import FLOATS, Taped
from remat_cli.gradient.tensor import Tensor

Stretch = tuple[int, int, int]  # an axis, and the begin and end of the piece along it


def join_stretches(steps: Sequence[Taped]) -> list[Taped]:
    """The steps, with those that take pieces of one value along one axis joined into one Split."""
    groups: dict[tuple[str, int], dict[int, Stretch]] = {}
    for index, step in enumerate(steps):
        if (piece := _stretch(step)) is not None:
            groups.setdefault((step.x.name, piece[0]), {})[index] = piece
    placed: dict[int, Taped | None] = {}
    for (_, axis), group in groups.items():
        if len(group) > 1 and _apart(group.values()):
            placed |= dict.fromkeys(group)
            placed[min(group)] = _split(steps, axis, group)
    found = [placed.get(index, step) for index, step in enumerate(steps)]
    return [step for step in found if step is not None]


def _stretch(step: Taped) -> Stretch | None:
    """The piece that a Slice or a Gather of one index takes, if it is one stretch of one axis."""
    known, reads = step.tape.constants, [x.name if x else "" for x in step.inputs]
    if step.kind not in ("Slice", "Gather") or step.x.dtype not in FLOATS or not step.y.size:
        return None
    if step.kind == "Gather":
        place = known.get(reads[1])
        if place is None or place.ndim:
            return None
        axis = step.get("axis", 0) % step.x.rank
        start = int(place) % step.x.shape[axis]
        return axis, start, start + 1
    changed = [axis for axis, size in enumerate(step.x.shape) if size != step.y.shape[axis]]
    if len(changed) != 1 or any(name and name not in known for name in reads[1:]):
        return None
    starts, _, axes, strides = (known[name].tolist() if name else [] for name in [*reads[1:], "", ""][:4])
    if any(stride != 1 for stride in strides):
        return None
    at = [axis % step.x.rank for axis in axes or range(len(starts))].index(changed[0])
    size = step.x.shape[changed[0]]
    start = min(max(starts[at] + (size if starts[at] < 0 else 0), 0), size)
    return changed[0], start, start + step.y.shape[changed[0]]


def _apart(pieces: Iterable[Stretch]) -> bool:
    """Whether no two pieces overlap."""
    ordered = sorted(pieces)
    return all(one[2] <= other[1] for one, other in pairwise(ordered))


def _split(steps: Sequence[Taped], axis: int, group: dict[int, Stretch]) -> Taped:
    """One step for all pieces, with an absent output for each gap between them."""
    first = steps[min(group)]
    outputs: list[Tensor | None] = []
    sizes: list[int] = []
    end = 0
    rest = (-1, (axis, first.x.shape[axis], 0))
    for index, (_, start, stop) in [*sorted(group.items(), key=lambda entry: entry[1]), rest]:
        if start > end:
            outputs.append(None)
            sizes.append(start - end)
        if index >= 0:
            outputs.append(steps[index].y)
            sizes.append(stop - start)
            end = stop
    return Taped("Split", first.name, (first.x,), tuple(outputs), {"axis": axis}, None, first.tape, {"sizes": sizes})
