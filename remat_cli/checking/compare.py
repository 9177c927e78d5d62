"""Compares two results, bit for bit or within a tolerance.

Invariant: NaNs in the same places count as equal, whatever their payload; 0.0 and -0.0 do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Difference:
    output: str
    says: str
    worst: float = float("inf")  # the greatest difference


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed difference of numbers: `absolute`, `relative` to the expected number, and `scale` times the largest
    number of the output; by default the bits must be the same."""

    relative: float = 0.0
    absolute: float = 0.0
    scale: float = 0.0


EXACT = Tolerance()
IN_PIECES = Tolerance(scale=1e-4)  # for sums that are added in another order


def differences(
    names: Sequence[str], before: Sequence[np.ndarray], after: Sequence[np.ndarray], near: Tolerance = EXACT
) -> list[Difference]:
    """The outputs that differ, the worst first."""
    if len(before) != len(after):
        return [Difference("outputs", f"there are {len(after)}, and there should be {len(before)}")]
    triples = zip(names, before, after, strict=True)
    found = [Difference(name, *differ) for name, old, new in triples if (differ := _differ(old, new, near))]
    return sorted(found, key=lambda one: -one.worst)


def _differ(old: np.ndarray, new: np.ndarray, near: Tolerance) -> tuple[str] | tuple[str, float] | None:
    strings = old.dtype.kind == new.dtype.kind == "U"  # whose longest says nothing of the type
    if (old.dtype != new.dtype and not strings) or old.shape != new.shape:
        return (f"it is {new.dtype}{list(new.shape)}, and should be {old.dtype}{list(old.shape)}",)
    wrong = _unequal(old, new)
    if not wrong.any():
        return None
    if old.dtype.kind in "OSUb":
        return (_counted(wrong),)
    wide = np.complex128 if old.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(old.astype(wide) - new.astype(wide))
        gaps = np.where(wrong, np.where(np.isnan(gaps), np.inf, gaps), 0.0)
        if old.dtype.kind not in "iu" and near != EXACT:
            sizes = np.abs(old.astype(wide))
            largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
            wrong &= ~(gaps <= near.absolute + near.relative * sizes + near.scale * largest)
    if not wrong.any():
        return None
    gaps = np.where(wrong, gaps, 0.0)
    worst = np.unravel_index(int(np.argmax(gaps)), old.shape)
    place = ", ".join(str(int(index)) for index in worst)
    says = f"{_counted(wrong)}, by {gaps[worst]:.6g} at most: [{place}] is {new[worst]} and should be {old[worst]}"
    return says, float(gaps[worst])


def _counted(wrong: np.ndarray) -> str:
    return f"{int(wrong.sum())} of {wrong.size} elements differ"


def _unequal(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    if old.dtype.kind in "OSU":
        return np.asarray(old != new)
    bits = np.dtype((np.void, old.dtype.itemsize))
    flat = np.ascontiguousarray(old).reshape(-1), np.ascontiguousarray(new).reshape(-1)
    wrong = np.asarray(flat[0].view(bits) != flat[1].view(bits)).reshape(old.shape)
    if old.dtype.kind not in "biu":
        wrong &= ~(np.isnan(old) & np.isnan(new))
    return wrong
