"""The report of a batch, while it runs and at its end, for programs and for people: JSON, JUnit's XML, Markdown,
comma-separated values.

Invariant: all four at the end have the same results; the JSON keeps to its schema.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from xml.etree import ElementTree

from remat_cli.batch import schema
from remat_cli.batch.baseline import Before, change_of
from remat_cli.batch.run import JobReport
from remat_cli.results.versions import versions
from remat_cli.saying.progress import clip, writes_over
from remat_cli.saying.tables import comma_separated
from remat_cli.units import show_bytes, show_time

FORMAT = "remat-report/1"
COLUMNS = (
    *("model", "budget", "method", "session", "status", "passed", "peak", "overhead", "gap", "cost", "stopped"),
    *("verified", "cached", "seconds", "why"),
)
SHORT_CHARACTERS = 240  # letters of why a job failed, where people read it; the report has all
BEYOND_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 65534, 65535, *range(55296, 57344)], "?")
UP, CLEAR = "\033[F", "\033[J"


def as_object(results: Sequence[JobReport], seconds: float) -> dict[str, Any]:
    """The report of `--report`; its keys are a contract."""
    jobs = [_job(result) for result in results]
    passed = sum(result.passed for result in results)
    found = {
        "format": FORMAT,
        "jobs": jobs,
        "passed": passed,
        "failed": len(jobs) - passed,
        "cached": sum(job["cached"] for job in jobs),
        "seconds": round(seconds, 3),
        "versions": versions(),
    }
    wrong = next(schema.faults(found, schema.schema_named("report")), None)
    assert wrong is None, f"the report is not as its schema says: {wrong}"
    return found


def _job(result: JobReport) -> dict[str, Any]:
    return {**result.said, "passed": result.passed, "why": result.why, "expected": result.job.expected.said()}


def as_json(results: Sequence[JobReport], seconds: float) -> str:
    return json.dumps(as_object(results, seconds), indent=1) + "\n"


def as_csv(results: Iterable[JobReport]) -> str:
    jobs = map(_job, results)
    return comma_separated([COLUMNS, *([job.get(name) for name in COLUMNS] for job in jobs)]) + "\n"


def as_junit(results: Sequence[JobReport], seconds: float) -> str:
    """A suite for each model; each thing that was expected of a job is a test case."""
    root = ElementTree.Element("testsuites", name="remat batch", time=f"{seconds:.3f}")
    for name in dict.fromkeys(result.job.model.name for result in results):
        suite = ElementTree.SubElement(root, "testsuite", name=name)
        for result in results:
            if result.job.model.name == name:
                _add_cases(suite, result)
    for element in (*root, root):
        for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            element.set(name, str(len(list(element.iter(kind)))))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_cases(suite: ElementTree.Element, result: JobReport) -> None:
    said = result.said
    for number, check in enumerate(result.checks):
        time = f"{said['seconds']:.3f}" if number == 0 else "0.000"  # a job's time counts once
        name = f"{result.job.folder} {check.name}"
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"remat.{result.job.model.name}", name=name, time=time
        )
        if check.fault:
            message = check.fault.translate(BEYOND_XML)
            fault = ElementTree.SubElement(case, "error" if check.name == "done" else "failure", message=message)
            fault.text = "\n".join([message, *([f"log: {said['log']}"] if said["log"] else [])])


def as_markdown(results: Sequence[JobReport], before: Mapping[tuple[str, ...], Before]) -> str:
    """A comment for a pull request: one line for each job, those that failed or changed first."""
    failed = [result for result in results if not result.passed]
    words = f"**remat batch**: {len(results) - len(failed)} of {len(results)} jobs passed"
    cached = sum(result.said["cached"] for result in results)
    lines = [words + (f", {cached} unchanged" if cached else ""), ""]
    head = ["", "model", "budget", "method", "status", "peak", "overhead"]
    changes = {id(result): change_of(result, before) for result in results}
    if before:
        head.append("before")
    lines += [_row(head), _row(["---"] * len(head))]
    ordered = sorted(results, key=lambda result: (result.passed, not changes[id(result)]))
    for result in ordered:
        said = result.said
        cells = ["ok" if result.passed else "**failed**", said["model"], said["budget"], said["method"], said["status"]]
        cells += [_bytes(said["peak"]), _share(said["overhead"])]
        if before:
            cells.append(changes[id(result)])
        lines.append(_row(cells))
    if failed:
        lines += ["", *(f"- `{result.job.title}`: {_plain(result.why)}" for result in failed)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    return _short(text).replace("|", "\\|")


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHORT_CHARACTERS else words[: SHORT_CHARACTERS - 4] + " ..."


def _bytes(count: int | None) -> str:
    return "-" if count is None else show_bytes(count)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:+.2%}"


def line(result: JobReport) -> str:
    """One result, for a log or a terminal."""
    said = result.said
    words = [
        "ok    " if result.passed else "FAILED",
        result.job.title,
        said["status"],
        *([_bytes(said["peak"]), _share(said["overhead"])] if said["peak"] is not None else []),
        "unchanged" if said["cached"] else f"{said['seconds']:.1f}s",
    ]
    if not result.passed:
        log = f" (log: {_near(said['log'])})" if said["log"] else ""
        words.append(f"- {_short(result.why)}{log}")
    return "  ".join(words)


def _near(path: str) -> str:
    """The path relative to the working directory."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else path


class ProgressTable:
    """`running`: titles and seconds of what is being done. On stderr: stdout is for answers."""

    def __init__(self, total: int, running: Callable[[], list[tuple[str, float]]], quiet: bool) -> None:
        self.total = total
        self.running = running
        self.quiet = quiet
        self.live = writes_over() and not quiet
        self.done = self.failed = self.cached = self.drawn = 0

    def __enter__(self) -> ProgressTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.live:
            sys.stderr.write(self._wiped())
            sys.stderr.flush()

    def __call__(self, result: JobReport | None) -> None:
        words = ""
        if result is not None:
            self.done += 1
            self.failed += not result.passed
            self.cached += bool(result.said["cached"])
            words = line(result) + "\n"
        if self.quiet or not (words or self.live):
            return
        sys.stderr.write(self._wiped() + words + self._below())
        sys.stderr.flush()

    def _wiped(self) -> str:
        """The text that erases the lines drawn below."""
        drawn, self.drawn = self.drawn, 0
        return UP * drawn + CLEAR if self.live and drawn else ""

    def _below(self) -> str:
        if not self.live:
            return ""
        rows = [f"        {title}  {show_time(seconds * 1e9)}" for title, seconds in self.running()]
        rows.append(f"{self.done}/{self.total} done, {self.failed} failed, {self.cached} unchanged")
        self.drawn = len(rows)
        return "".join(clip(row) + "\n" for row in rows)
