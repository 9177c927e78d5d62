"""The ways of running a model, what was measured of each, and which one to recommend.

Invariant: a way is tried as its user would run it; what has to be set for it is said with it. What is recommended
ran, gave outputs that are near enough, and took no longer than was allowed. A new file is recommended only where it
holds clearly less than two options do, and these only where they do so themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from remat_cli.checking.compare import EXACT, IN_PIECES, differences
from remat_cli.checking.exactness import FACTOR_MOST

PYTHON, C, STOCK = "python", "c", "stock"
TARGETS = (PYTHON, C, STOCK)  # what is to run the model
CLEARLY = 0.95  # of what is held with less to do


@dataclass(frozen=True, slots=True)
class RunWay:
    """`sets`: what a program has to set, or to open. `written`: whether it needs a new file."""

    name: str
    sets: str
    written: bool = False


AS_IT_IS = RunWay("as it is", "nothing")
LEAN = RunWay("arena and pattern off", "enable_cpu_mem_arena = enable_mem_pattern = False")


@dataclass(frozen=True, slots=True)
class Outputs:
    """How the outputs are to those of the model as it is. `off`: by how much of the largest number in an output they
    differ at most; infinite where an output is of another kind. `own`: how far off those of the model as it is
    are from what it gives in 32 bits, or by the plainest kernels, where that was looked at."""

    same: bool
    near: bool
    off: float = 0.0
    own: float | None = None


SAME = Outputs(same=True, near=True)


@dataclass(frozen=True, slots=True)
class TriedWay:
    """What was measured. Bytes: the most that the process held in all, while its session was `loading`, and what it
    still `held` after the last run. `ns`: of the fastest run after the first. `failed`: why there are no figures.
    `files`: what was made for it, which waits to be put in its place."""

    way: RunWay
    peak: int = 0
    loading: int = 0
    held: int = 0
    ns: int = 0
    outputs: Outputs = SAME
    failed: str = ""
    late: bool = False
    files: tuple[Path, ...] = ()

    @property
    def ran(self) -> bool:
        return not self.failed


def compared(before: list[np.ndarray], after: list[np.ndarray]) -> Outputs:
    """How the second are to the first."""
    names = [str(place) for place in range(len(before))]
    if not differences(names, before, after, EXACT):
        return SAME
    near = not differences(names, before, after, IN_PIECES)
    return Outputs(same=False, near=near, off=max(map(_off, before, after)) if len(before) == len(after) else np.inf)


def judged(found: Outputs, true: list[np.ndarray], before: list[np.ndarray], after: list[np.ndarray]) -> Outputs:
    """The same by what is true: as near as the model as it is, if each output is hardly further from that."""
    pairs = [(_off(one, _as(one, old)), _off(one, _as(one, new))) for one, old, new in zip(true, before, after)]
    near = all(new <= max(FACTOR_MOST * old, IN_PIECES.scale) for old, new in pairs) and len(true) == len(after)
    return replace(found, near=found.near or near, own=max((old for old, _ in pairs), default=0.0))


def _as(true: np.ndarray, short: np.ndarray) -> np.ndarray:
    return short.astype(true.dtype) if true.dtype == np.float32 else short


def _off(old: np.ndarray, new: np.ndarray) -> float:
    if old.shape != new.shape or old.dtype != new.dtype:
        return float("inf")
    if old.dtype.kind not in "fciu" or not old.size:
        return 0.0 if np.array_equal(old, new) else float("inf")
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.abs(old.astype(np.float64) - new.astype(np.float64))
        sizes = np.abs(old.astype(np.float64))
    gaps = np.where((old == new) | (np.isnan(gaps) & np.isnan(sizes)), 0.0, gaps)
    largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
    worst = float(np.max(gaps, initial=0.0))
    return worst / largest if largest else (0.0 if worst == 0 else float("inf"))


@dataclass(frozen=True, slots=True)
class Recommended:
    """`best`: what is recommended, which may be the model as it is. `without`: the leanest way that needs no new file.
    `against`: what gains are held against: two options of onnxruntime, or the model as it is where that holds less."""

    best: TriedWay
    without: TriedWay
    against: TriedWay

    @property
    def saved(self) -> float:
        """The share of memory that the best way saves."""
        return 1 - self.best.peak / max(1, self.against.peak)


def is_good(one: TriedWay, first: TriedWay, slower: float) -> bool:
    """Whether it may be recommended."""
    return one.ran and one.outputs.near and (one.ns <= (1 + slower) * first.ns or one is first)


def choose(tried: Sequence[TriedWay], slower: float) -> Recommended:
    """Of ways that were tried, the model as it is first."""
    good = [one for one in tried if is_good(one, tried[0], slower)]
    without = _leaner(tried[0], [one for one in good if not one.way.written])
    against = min((one for one in tried if one.ran and not one.way.written), key=lambda one: one.peak)
    return Recommended(_leaner(without, [one for one in good if one.way.written]), without, against)


def _leaner(so_far: TriedWay, others: Sequence[TriedWay]) -> TriedWay:
    """The leanest of the others, if it holds clearly less."""
    best = min(others, key=lambda one: one.peak, default=so_far)
    return best if best.peak < CLEARLY * so_far.peak else so_far
