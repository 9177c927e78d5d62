"""Progress as the user sees it: one line on stderr, written over in place, and only on a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from remat_cli.model.proved import PlanProof, overhead_of
from remat_cli.planning.time_plan import PartTimes
from remat_cli.units import show_time
from solvers.problem import Progress


def writes_over() -> bool:
    """Whether stderr is a terminal that can write over a line."""
    return sys.stderr.isatty() and _knows_codes()


def has_colors(stream: TextIO) -> bool:
    return stream.isatty() and _knows_codes() and not os.environ.get("NO_COLOR")


def clip(words: str, end: str = "") -> str:
    """As much of the words as fits in a row beside the end, because a wrapped line cannot be written over. One column
    stays empty, because some terminals wrap there."""
    from shutil import get_terminal_size  # late: it brings all that compresses

    width = get_terminal_size().columns - 1 - len(end)
    return (words if len(words) <= width else words[: max(0, width - 3)] + "...") + end


def _knows_codes() -> bool:
    return os.environ.get("TERM", "") not in ("", "dumb")


PATIENCE_SECONDS = 2.0  # how long the same words stand before the line counts seconds


class Line:
    """One line of the terminal that is written over and gone at the end. Words that stand for long get the seconds
    since, so that the user sees that work goes on."""

    def __init__(self, quiet: bool, patience: float = PATIENCE_SECONDS) -> None:
        self.shown = writes_over() and not quiet
        self.patience = patience
        self._words, self._since = "", 0.0
        self._over = threading.Event()
        self._writing = threading.Lock()

    def __enter__(self) -> Line:
        if self.shown:
            threading.Thread(target=self._tick, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self.say("")

    def say(self, words: str) -> None:
        if self.shown:
            with self._writing:
                self._words, self._since = words, time.monotonic()
                _write(words)

    def _tick(self) -> None:
        while not self._over.wait(self.patience / 2):
            with self._writing:
                stood = time.monotonic() - self._since
                if self._words and stood >= self.patience and not self._over.is_set():
                    _write(self._words, f"  ({stood:.0f} s)")


def _write(words: str, end: str = "") -> None:
    sys.stderr.write("\r\033[K" + clip(words, end))
    sys.stderr.flush()


def tell_times(times: PartTimes, seconds: float) -> None:
    """Print on stderr how long each part took. A part within another counts for both."""
    parts = ", ".join(f"{name} {took:.2f} s" for name, took in times.seconds.items())
    sys.stderr.write(f"of {seconds:.2f} s: {parts}\n")


def bar(at: float, seconds: float, what: str) -> str:
    """The bar: `at` of 1 is done; with the time left and the words for what is going on."""
    filled = min(20, round(20 * at))
    words = f"[{'#' * filled}{'.' * (20 - filled)}] {at:4.0%}  {show_time(seconds * 1e9)} left"
    return f"{words}  {what[:60]}"


class SearchWords:
    """The best plan, bound, gap and time of a search so far, in words."""

    def __init__(self, baseline_cost: int) -> None:
        self.baseline = baseline_cost
        self.cost: int | None = None
        self.bound: float | None = None

    def heard(self, progress: Progress) -> str:
        if progress.cost is not None:
            self.cost = progress.cost if self.cost is None else min(self.cost, progress.cost)
        if progress.bound is not None:
            self.bound = progress.bound if self.bound is None else max(self.bound, progress.bound)
        parts = [f"{progress.seconds:6.1f}s"]
        parts.append("no plan yet" if self.cost is None else f"plan {overhead_of(self.cost, self.baseline):+.3%}")
        if self.bound is not None:
            parts.append(f"bound {overhead_of(self.bound, self.baseline):+.3%}")
        if self.cost is not None and (gap := PlanProof(self.cost, self.bound).gap) is not None:
            parts.append(f"gap {gap:.3%}")
        parts += [words for words in (progress.by, progress.doing) if words]
        return "  ".join(parts)


@contextmanager
def progress_line(baseline_cost: int, quiet: bool, verbose: int) -> Iterator[Callable[[Progress], None]]:
    """The receiver of progress: it writes over one line of the terminal, or with -v prints a line for each step."""
    search = SearchWords(baseline_cost)
    with Line(quiet) as line:

        def show(progress: Progress) -> None:
            words = search.heard(progress)
            if verbose and not quiet:
                sys.stderr.write(words + "\n")
                sys.stderr.flush()
            else:
                line.say(words)

        yield show
