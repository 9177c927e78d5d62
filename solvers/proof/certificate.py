"""A proof of a bound: which rows are added up, how often, and in which cases. All numbers are whole.

Invariant: `check` believes nothing that is said here. Nodes and values are the problem's own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.proof.rows import Name, Number


@dataclass(frozen=True, slots=True)
class Sum:
    """Row number `rows[i]` is taken `weights[i]` / 2**`shift` times.

    `costs`: whether the sum is compared with the cost of the schedule, or shows by itself that the case cannot occur.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    shift: int
    costs: bool


@dataclass(frozen=True, slots=True)
class Cases:
    """A number is 0 in one case and 1 in the other; the indices are those of the two following steps, later in the same
    list."""

    number: Number
    zero: int
    one: int


@dataclass(frozen=True, slots=True)
class CostProof:
    """No schedule within `budget` costs less than `bound`; None: there is no such schedule.

    `order`: the proof is for schedules that first compute these nodes in that order; empty: for all schedules.
    """

    budget: int
    bound: int | None
    order: tuple[int, ...]
    pivots: tuple[int, ...]
    rows: tuple[Name, ...]
    steps: tuple[Sum | Cases, ...]


@dataclass(frozen=True, slots=True)
class PeakProof:
    """No schedule has a peak below `bound`, because the reads of `node` (None: the outputs, at the end) cannot be
    brought together for less."""

    bound: int
    node: int | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """`problem`: the SHA-256 of the problem as it is written out, which defines what the numbers name."""

    problem: str
    costs: tuple[CostProof, ...]
    peak: PeakProof | None
