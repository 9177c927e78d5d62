"""Results beside those of an earlier report: what is worse by more than a threshold fails.

Invariant: only what both reports know of the same job is compared; a plan that is no longer found is worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remat_cli.batch import schema
from remat_cli.batch.expect import Check
from remat_cli.batch.run import JobReport
from remat_cli.errors import BadInput
from remat_cli.reading import parse_json, read_whole
from remat_cli.units import show_bytes

REPORT_BYTES = 2**28  # the most bytes of a report
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Before:
    """The facts of an earlier report about a job."""

    status: str
    peak: int | None
    overhead: float | None


def read(path: Path) -> dict[Key, Before]:
    try:
        said = parse_json(read_whole(path, REPORT_BYTES))
    except ValueError as error:
        raise BadInput(f"{path} is not a report: {error}") from error
    for place, words in schema.faults(said, schema.schema_named("report")):
        where = ".".join(map(str, place))
        raise BadInput(f"{path} is not a report of `remat batch --report`: {where}: {words}")
    return {_key(job): Before(job["status"], job["peak"], job["overhead"]) for job in said["jobs"]}


def _key(job: Mapping[str, Any]) -> Key:
    return job["model"], job["budget"], job["method"], job["session"]


def hold_against(results: Sequence[JobReport], before: Mapping[Key, Before], threshold: float) -> list[JobReport]:
    """The results, each with one more check: the figures that are worse than before."""
    return [
        result if (known := before.get(_key(result.said))) is None else result.against(_check(result, known, threshold))
        for result in results
    ]


def _check(result: JobReport, before: Before, threshold: float) -> Check:
    said, worse = result.said, []
    overhead, peak = said["overhead"], said["peak"]
    if before.overhead is not None and overhead is None:
        worse.append(f"{said['status']}, where there was a plan before")
    elif before.overhead is not None and 1 + overhead > (1 + before.overhead) * (1 + threshold):
        worse.append(f"overhead {overhead:+.2%}, {before.overhead:+.2%} before")
    if before.peak is not None and peak is not None and peak > before.peak * (1 + threshold):
        worse.append(f"peak {show_bytes(peak)}, {show_bytes(before.peak)} before")
    return Check("baseline", "; ".join(worse))


def change_of(result: JobReport, before: Mapping[Key, Before]) -> str:
    """The changes since the earlier report, for people; empty if there are none."""
    known = before.get(_key(result.said))
    if known is None:
        return "new" if before else ""
    said, words = result.said, []
    if known.status != said["status"]:
        words.append(known.status)
    if known.overhead is not None and known.overhead != said["overhead"]:
        words.append(f"{known.overhead:+.2%}")
    if known.peak is not None and known.peak != said["peak"]:
        words.append(show_bytes(known.peak))
    return ", ".join(words)
