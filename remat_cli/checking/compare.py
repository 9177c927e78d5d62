"""Compares two results, bit for bit or within a tolerance, and finds what a model's own results differ by.

Invariant: NaNs in the same places count as equal, whatever their payload; 0.0 and -0.0 do not. Only what the
original was seen to do itself is allowed.

On a GPU some kernels add in the order in which threads come. Sums in pieces are added in another order than the
original's: there its further runs have inputs that differ in their last digits. What comes to nothing but rounding
differs by as much: the gradient of a bias before a BatchNormalization.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np

from remat_cli.checking.metered import Reply

FACTOR = 8.0  # times as far as the original was seen to be from itself: a few runs do not show the farthest
TURNS = 3  # further runs of the original: an output may be the same by chance


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


Differences = tuple[Difference, ...]


def compare(
    names: Sequence[str],
    near: Tolerance,
    results: Callable[[str], Sequence[np.ndarray]],
    original: Callable[..., Reply],
) -> tuple[Differences, Differences]:
    """`beyond_itself` for what both models left in before.npz and after.npz. `original` runs the first of them again,
    and `results` reads a file of results."""
    was = results("before.npz")

    def again() -> Sequence[Difference]:
        reply = original(outputs="again.npz")
        if reply.refused or reply.failed:
            return ()
        return differences(names, was, results("again.npz"), near)

    return beyond_itself(differences(names, was, results("after.npz"), near), again)


def without(differs: Sequence[Difference], good: Container[str]) -> Differences:
    """The outputs that are less exact than the original's; later runs are compared like the first."""
    return tuple(one for one in differs if one.output.partition(" of the ")[0] not in good)


def noise_of(differs: Sequence[Difference], varies: Sequence[Difference]) -> frozenset[str]:
    """The outputs that are as near as the original's are to themselves, which no other witness need judge."""
    return frozenset(one.output for one in varies) - {one.output for one in differs}


def beyond_itself(
    wrong: Sequence[Difference], again: Callable[[], Sequence[Difference]]
) -> tuple[Differences, Differences]:
    """The differences that the original does not show between runs of its own, and those that it was seen to show.

    `again` runs the original once more, and compares its results with those of its first run.
    """
    left, seen = tuple(wrong), dict[str, Difference]()
    for _ in range(TURNS):
        own = again() if left else ()
        if not own:
            break
        for one in own:
            seen[one.output] = max(one, seen.get(one.output, one), key=lambda each: each.worst)
        left = tuple(one for one in left if one.output not in seen or one.worst > FACTOR * seen[one.output].worst)
    return left, tuple(seen.values())
