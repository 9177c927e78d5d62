"""Reads the output of `remat sweep --json` back for a picture: the budget, cost and needs of each point.

Invariant: what is read back is complete and of the right types.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from remat_cli.errors import BadInput
from remat_cli.formats.declared import declared
from remat_cli.limits import TEXT_BYTES
from remat_cli.reading import parse_json, read_whole


@dataclass(frozen=True, slots=True)
class PointRecord:
    """One budget of one method; `peak` and `overhead` are None where the method found no plan."""

    budget: int
    method: str
    status: str
    peak: int | None = None
    overhead: float | None = None


@dataclass(frozen=True, slots=True)
class KneeRecord:
    budget: int
    method: str


@dataclass(frozen=True, slots=True)
class CurveRecord:
    points: tuple[PointRecord, ...]
    knee: KneeRecord | None = None


def read(path: Path) -> CurveRecord:
    try:
        found: CurveRecord = declared(CurveRecord, parse_json(read_whole(path, TEXT_BYTES)))
    except ValueError as error:
        raise BadInput(f"{path} is no curve: {error}; curves are what 'remat sweep --json' prints") from error
    return found
