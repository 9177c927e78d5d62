"""Compares a job's result with what the manifest expects, and gives the exit codes of differences.

Invariant: a job passes if it has a plan, or what was expected instead, and every other expectation holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from remat_cli.units import show_bytes

STATUS_RANKS = ("feasible", "optimal in this order", "optimal")  # each status includes all before it
OTHERWISE_CODE = 6  # the exit code of an unexpected result
NONE = {"infeasible": 4, "unknown": 5}  # exit codes where there is no plan
CODES_WORST_FIRST = (1, 2, 3, 6, 4, 5, 0)  # exit codes, the worst first


@dataclass(frozen=True, slots=True)
class Expected:
    """The expectations of a manifest; None where it does not say."""

    status: str | None = None
    max_overhead: float | None = None
    max_gap: float | None = None
    max_peak: int | None = None
    verify: bool | None = None

    def said(self) -> dict[str, Any]:
        found = {field.name.replace("_", "-"): getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: the reason why it fails, if it does, and the exit code of that failure."""

    name: str
    fault: str = ""
    code: int = OTHERWISE_CODE


def checks(result: Mapping[str, Any], expected: Expected) -> list[Check]:
    """All expectations of a result, each checked. `result`: as in a report, `code` its own exit code."""
    if result["code"]:
        return [Check("done", result["why"], result["code"])]
    return list(_checks(result, expected))


def _checks(result: Mapping[str, Any], expected: Expected) -> Iterator[Check]:
    status, wanted = result["status"], expected.status
    if wanted is not None:
        met = (
            STATUS_RANKS.index(status) >= STATUS_RANKS.index(wanted)
            if status in STATUS_RANKS and wanted in STATUS_RANKS
            else status == wanted
        )
        yield Check("status", "" if met else f"{status}, not {wanted}", NONE.get(status, OTHERWISE_CODE))
        if wanted == "infeasible" or not met:
            return
    elif status in NONE:
        yield Check("plan", result["why"] or status, NONE[status])
        return
    else:
        yield Check("plan")
    for name, limit, show in (
        ("overhead", expected.max_overhead, _percent),
        ("gap", expected.max_gap, _percent),
        ("peak", expected.max_peak, show_bytes),
    ):
        if limit is not None:
            yield Check(f"max-{name}", _over(name, result[name], limit, show))
    if expected.verify:
        yield Check("verify", "" if result["verified"] else result["why"] or "it was not verified")


def _over(name: str, value: Any, limit: Any, show: Any) -> str:
    if value is None:
        return f"nothing is known of the {name}"
    return f"{name} {show(value)} is more than {show(limit)}" if value > limit else ""


def _percent(share: float) -> str:
    return f"{share:.2%}"


def worst(codes: Iterable[int]) -> int:
    """The most serious exit code."""
    return min(codes, key=lambda code: CODES_WORST_FIRST.index(code) if code in CODES_WORST_FIRST else -1, default=0)
