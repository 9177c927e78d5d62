"""The ways of running a model, and what was measured of each.

Invariant: a way is tried as its user would run it; what has to be set for it is said with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from remat_cli.checking.compare import EXACT, IN_PIECES, differences
from remat_cli.checking.exactness import FACTOR_MOST

PYTHON, C, STOCK = "python", "c", "stock"
TARGETS = (PYTHON, C, STOCK)  # what is to run the model


@dataclass(frozen=True, slots=True)
class RunWay:
    """`sets`: what a program has to set, or to open. `written`: whether it needs a new file."""

    name: str
    sets: str
    written: bool = False


@dataclass(frozen=True, slots=True)
class SessionOf:
    """A file to run, in which kind of session (of `child`), with how many threads of one op (0: all cores), and on
    which inputs, if not on those of all ways."""

    model: Path
    session: str
    threads: int = 0
    feeds: Path | None = None


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
