"""What proves a bound: which rows are added up, how often, in which cases. Whole numbers throughout.

Invariant: says nothing that `check` believes. Nodes and values are the problem's own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.proof.rows import Name, Number


@dataclass(frozen=True, slots=True)
class Sum:
    """`weights[i]`, over 2**`shift`, is how often row number `rows[i]` is taken.

    `costs`: whether what the schedule costs is held against the sum, or the sum alone shows that there is no such case.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    shift: int
    costs: bool


@dataclass(frozen=True, slots=True)
class Cases:
    """Either that number is 0, or it is 1; the places of what then follows, further on in the same list."""

    number: Number
    zero: int
    one: int


@dataclass(frozen=True, slots=True)
class CostProof:
    """No schedule within `budget` costs less than `bound`; None: there is none at all.

    `order`: holds for schedules that first compute these nodes in that order; empty: for all.
    """

    budget: int
    bound: int | None
    order: tuple[int, ...]
    pivots: tuple[int, ...]
    rows: tuple[Name, ...]
    steps: tuple[Sum | Cases, ...]


@dataclass(frozen=True, slots=True)
class PeakProof:
    """No schedule has a peak below `bound`: what `node` needs (None: the end) is not brought together for less."""

    bound: int
    node: int | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """`problem`: the SHA-256 of the problem as it is written out, which says what its numbers name."""

    problem: str
    costs: tuple[CostProof, ...]
    peak: PeakProof | None
