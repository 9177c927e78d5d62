"""Are two results the same, bit for bit?

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


def differences(names: Sequence[str], before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> list[Difference]:
    """What differs, output by output."""
    if len(before) != len(after):
        return [Difference("outputs", f"there are {len(after)}, and there should be {len(before)}")]
    triples = zip(names, before, after, strict=True)
    return [Difference(name, says) for name, old, new in triples if (says := _differ(old, new))]


def _differ(old: np.ndarray, new: np.ndarray) -> str | None:
    if old.dtype != new.dtype or old.shape != new.shape:
        return f"it is {new.dtype}{list(new.shape)}, and should be {old.dtype}{list(old.shape)}"
    wrong = _unequal(old, new)
    count = int(wrong.sum())
    if not count:
        return None
    words = f"{count} of {old.size} elements differ"
    if old.dtype.kind in "OSUb":
        return words
    wide = np.complex128 if old.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(old.astype(wide) - new.astype(wide))
    gaps = np.where(wrong, np.where(np.isnan(gaps), np.inf, gaps), 0.0)
    worst = np.unravel_index(int(np.argmax(gaps)), old.shape)
    place = ", ".join(str(int(index)) for index in worst)
    return f"{words}, by {gaps[worst]:.6g} at most: [{place}] is {new[worst]} and should be {old[worst]}"


def _unequal(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    if old.dtype.kind in "OSU":
        return np.asarray(old != new)
    bits = np.dtype((np.void, old.dtype.itemsize))
    flat = np.ascontiguousarray(old).reshape(-1), np.ascontiguousarray(new).reshape(-1)
    wrong = np.asarray(flat[0].view(bits) != flat[1].view(bits)).reshape(old.shape)
    if old.dtype.kind not in "biu":
        wrong &= ~(np.isnan(old) & np.isnan(new))
    return wrong
