"""The progress of a batch: a line for each job that ends, and on a terminal the tasks under way below them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType

from remat_cli.batch.report import line
from remat_cli.batch.run import JobReport
from remat_cli.saying.progress import clip, writes_over
from remat_cli.units import show_time

UP, CLEAR = "\033[F", "\033[J"


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
