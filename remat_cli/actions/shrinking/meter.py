"""Meters a program from outside: what its process holds, by the kernel's count, and how long its runs take.

Invariant: what a process held before its session is in no figure. A process that is killed, or that takes longer than
there is time for, is a `Failed` that says so, and is gone at the end.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

from profiles.system import told_of
from remat_cli.children import Child
from remat_cli.errors import BadInput
from remat_cli.formats.declared import declared
from solvers.clock import Clock
from solvers.placement.largest import Placement

REST_SECONDS = 0.25  # at most, for threads that spin after a run: onnxruntime's do for some 20 ms if nothing is busy
REST_LOOK_SECONDS = 0.001
NO_COUNT = "shrink reads what a process holds from /proc, which is on Linux alone"


class Failed(Exception):
    """Why the program gave no answer. `late`: there was no time for it, or nobody wants it any more."""

    def __init__(self, says: str, late: bool = False) -> None:
        super().__init__(says)
        self.late = late


class MeteredProcess:
    """A process with one session on a model. `before`: what it held before that; `times`: ns of each run so far."""

    def __init__(self, model: Path, session: str, feeds: Path, clock: Clock, threads: int = 0) -> None:
        if not Path("/proc/self/clear_refs").exists():
            raise BadInput(NO_COUNT)
        self.clock, self.before = clock, 0
        self.times: list[int] = []
        self.child = Child("remat_cli.actions.shrinking.child")
        self.asked = {"model": str(model.resolve()), "session": session, "feeds": str(feeds), "threads": threads}

    def __enter__(self) -> MeteredProcess:
        try:
            self._ask(self.asked)
        except BaseException:
            self.child.end()
            raise
        self.before = self._count("VmRSS")
        (self._proc / "clear_refs").write_text("5")  # the highest so far is what there is now
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.child.end()

    def make(self) -> None:
        self._ask(["make"])

    def run(self) -> int:
        """ns of a run."""
        self.times.append(int(self._ask(["run"])["ns"]))
        return self.times[-1]

    def rest(self) -> None:
        """Wait until its threads sleep: those that still spin after a run would take a core from another process."""
        begun = monotonic()
        while self._is_awake() and monotonic() - begun < REST_SECONDS:
            sleep(REST_LOOK_SECONDS)

    def keep(self, path: Path) -> None:
        self._ask(["keep", str(path)])

    def places(self) -> Placement:
        """Where values lay in a run that was looked at."""
        found: Placement = declared(Placement, self._ask(["places"]))
        return found

    @property
    def peak(self) -> int:
        """The most that the process held beyond what it held before its session, in bytes."""
        return max(0, self._count("VmHWM") - self.before)

    @property
    def held(self) -> int:
        """The same of what it holds now."""
        return max(0, self._count("VmRSS") - self.before)

    @property
    def _proc(self) -> Path:
        return Path(f"/proc/{self.child.process.pid}")

    def _is_awake(self) -> bool:
        try:
            stats = [path.read_text() for path in (self._proc / "task").glob("*/stat")]
        except OSError:  # a thread is gone
            return True
        return any(stat.rpartition(")")[2].split()[0] == "R" for stat in stats)

    def _count(self, name: str) -> int:
        try:
            return told_of(self.child.process.pid, name)
        except OSError as error:
            raise Failed(self.child.why()) from error

    def _ask(self, words: object) -> dict[str, Any]:
        self._check_time()
        found: dict[str, Any] | None = self.child.ask(words, self._check_time)
        if found is None:
            raise Failed(self.child.why())
        if "failed" in found:
            raise Failed(found["failed"])
        return found

    def _check_time(self) -> None:
        if self.clock.interrupts():
            raise Failed("there was no time for it", late=True)
