"""What plan files say of places and of ops in pieces, as records: what they declare is what is checked.

Invariant: what a file leaves out is what the records have by default, and is not written.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

from remat_cli.formats.declared import Between
from solvers.placement.largest import Placement

MOST_PIECES = 1 << 16
MOST_COST = 1 << 60  # nanoseconds, or bytes

Cost = Annotated[int, Between(0, MOST_COST)]


@dataclass(frozen=True, slots=True)
class RecordedPlaces(Placement):
    """Where values lie. Of places that runs showed: `threads` of those runs; `layout`: how many channels lie together
    in the model's layouts, where it has any; `weights`: the bytes of weights that stay in memory, where runs let go of
    others."""

    threads: int | None = None
    layout: int | None = None
    weights: int | None = None


def places_of(placement: Placement, **seen: int | None) -> RecordedPlaces:
    """The places, with what was seen of the runs that showed them."""
    return RecordedPlaces(placement.block, placement.bound, placement.allocations, **seen)


@dataclass(frozen=True, slots=True)
class CutRegion:
    """Ops that are cut together: in how many pieces, and each in which way, by name."""

    pieces: Annotated[int, Between(2, MOST_PIECES)]
    ways: dict[str, str]


@dataclass(frozen=True, slots=True)
class CutOps:
    """How a graph in pieces is made of the model's. `sha256`: of that graph; `exact`: whether its results are the same
    bits. `costs`: measured time and workspace of ops that only it has."""

    exact: bool
    sha256: str
    regions: tuple[CutRegion, ...]
    costs: dict[str, tuple[Cost, Cost]] = field(default_factory=dict)


def as_said(part: RecordedPlaces | CutOps) -> dict[str, Any]:
    """The part as its file has it."""
    said = asdict(part)
    return {one.name: said[one.name] for one in fields(part) if said[one.name] not in (None, {})}
