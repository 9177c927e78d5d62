"""Reads the output of `remat sweep --json` back for a picture: the budget, cost and needs of each point.

Invariant: what is read back is complete and of the right types.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.limits import TEXT_BYTES
from remat_cli.reading import parse_json, read_whole


@dataclass(frozen=True, slots=True)
class PointRecord:
    """One budget of one method; `peak` and `overhead` are None where the method found no plan."""

    budget: int
    method: str
    status: str
    peak: int | None
    overhead: float | None


@dataclass(frozen=True, slots=True)
class CurveRecord:
    points: tuple[PointRecord, ...]
    knee: tuple[int, str] | None  # the budget and the method


def read(path: Path) -> CurveRecord:
    try:
        data = parse_json(read_whole(path, TEXT_BYTES))
    except ValueError as error:
        raise BadInput(f"{path} is no curve: {error}; curves are what 'remat sweep --json' prints") from error
    match data:
        case {"points": list(points)}:
            found = tuple(_point(point, path, f"points[{place}]") for place, point in enumerate(points))
            return CurveRecord(found, _knee(data.get("knee"), path))
    raise BadInput(f"{path} is no curve: it has no list of 'points'; curves are what 'remat sweep --json' prints")


def _point(given: Any, path: Path, what: str) -> PointRecord:
    match given:
        case {"budget": int(budget), "method": str(method), "status": str(status)}:
            peak, overhead = given.get("peak"), given.get("overhead")
            if _is_number(peak) and _is_number(overhead) and not isinstance(budget, bool):
                return PointRecord(budget, method, status, peak, overhead)
    raise BadInput(f"{path}: {what} does not give a budget, a method, a status, a peak and an overhead")


def _knee(given: Any, path: Path) -> tuple[int, str] | None:
    match given:
        case None:
            return None
        case {"budget": int(budget), "method": str(method)}:
            return budget, method
    raise BadInput(f"{path}: the knee does not give a budget and a method")


def _is_number(given: object) -> bool:
    if given is None:
        return True
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
