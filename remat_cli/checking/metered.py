"""Meters a program from outside: what its process holds, by the kernel's count, and how long its runs take.

Invariant: what a process held before its session is in no figure. A process that is killed, or that takes longer than
there is time for, is a `Failed` that says so, and is gone at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

from remat_cli.checking.child import UserProgram
from remat_cli.checking.weight import COUNTED, mapped_now, resident, resident_now, resident_peak
from remat_cli.children import Child
from remat_cli.formats.declared import declared
from solvers.clock import Clock
from solvers.placement.placed import Placement

REST_SECONDS = 0.25  # at most, for threads that spin after a run: onnxruntime's do for some 20 ms if nothing is busy
REST_LOOK_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Kernel:
    """One that ran: what was requested of the arena `after` it, and the `most` there was in its course."""

    name: str
    op_type: str
    after: int
    most: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a process. `arena`: the most that the arena held during each run, as requested of it (None where
    there is no profile)."""

    refused: str | None = None  # why the session could not be made
    failed: str | None = None  # why a run broke off
    endless: bool = False  # the run had not ended when its time was up
    arena: tuple[int, ...] = ()
    grew: int | None = None  # the greatest growth of the process's memory in its runs
    loaded: int | None = None  # its growth by the session, before any run
    loading: int | None = None  # and the greatest while the session was made
    stray: int | None = None  # allocations that were not as planned
    kernels: tuple[Kernel, ...] = ()  # the kernels of the first run
    times: tuple[int, int] | None = None  # ns of a run of this model and of the other, undisturbed
    waited: float = 0.0  # the share of the time that threads waited for a processor, where no run was undisturbed
    probe: int = 0  # ns of the op that is timed with every profile
    inside: tuple[dict[str, int], ...] = ()  # ns of each kernel of this model and of the other, by its op's name


class Failed(Exception):
    """Why the program gave no answer. `late`: there was no time for it, or nobody wants it any more."""

    def __init__(self, says: str, late: bool = False) -> None:
        super().__init__(says)
        self.late = late


class Refused(Failed):
    """Why the runtime makes no session of the model."""


class MeteredProcess:
    """A process with one session; `feeds`: where the program has none of its own. `before`: what it held when the count
    began, at first before its session; `times`: ns of each run so far."""

    def __init__(self, program: UserProgram, feeds: Path, clock: Clock) -> None:
        self.clock, self.before, self._mapped = clock, 0, 0
        self.times: list[int] = []
        self.program = replace(program, model=program.model.resolve(), feeds=program.feeds or feeds)
        self.child = Child("remat_cli.checking.child")

    def __enter__(self) -> MeteredProcess:
        try:
            self._ask(asdict(self.program))
            self.count()
        except BaseException:
            self.child.end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.child.end()

    def count(self) -> None:
        """Count what it holds from here on."""
        self._mapped = self._told(mapped_now) if COUNTED else 0
        self.before = self._told(resident_now)

    def tell(self, what: str, *given: Any) -> Any:
        """Have it do one thing of `child.Running`; what that gives. Raises Failed."""
        return self._ask([what, *given])

    def make(self) -> None:
        self.tell("make")

    def run(self) -> int:
        """ns of a run."""
        self.times.append(self.tell("run"))
        return self.times[-1]

    def rest(self) -> None:
        """Wait until its threads sleep: those that still spin after a run would take a core from another process."""
        begun = monotonic()
        while self._is_awake() and monotonic() - begun < REST_SECONDS:
            sleep(REST_LOOK_SECONDS)

    def keep(self, path: Path) -> None:
        self.tell("keep", str(path))

    def places(self) -> Placement:
        """Where values lay in a run that was looked at."""
        found: Placement = declared(Placement, self.tell("places"))
        return found

    @property
    def peak(self) -> int:
        """The most that the process held beyond what it held when the count began, in bytes."""
        return max(0, self._told(resident_peak) - self.before)

    @property
    def held(self) -> int:
        """The same of what it holds now."""
        return max(0, self._told(resident) - self.before)

    @property
    def mapped(self) -> int:
        """How much of what it holds now is files of data that were mapped since."""
        return max(0, self._told(mapped_now) - self._mapped) if COUNTED else 0

    def _is_awake(self) -> bool:
        try:
            stats = [path.read_text() for path in Path(f"/proc/{self.child.process.pid}/task").glob("*/stat")]
        except OSError:  # a thread is gone
            return True
        return any(stat.rpartition(")")[2].split()[0] == "R" for stat in stats)

    def _told(self, count: Callable[[int], int]) -> int:
        """What is counted of the process; where nobody can, the most that it ever held, which it tells."""
        try:
            return count(self.child.process.pid) if COUNTED else int(self.tell("highest"))
        except OSError as error:
            raise Failed(self.child.why()) from error

    def _ask(self, words: object) -> Any:
        self._check_time()
        found: dict[str, Any] | None = self.child.ask(words, self._check_time)
        if found is None:
            raise Failed(self.child.why())
        if "failed" in found:
            raise (Refused if words == ["make"] else Failed)(found["failed"])
        return found["said"]

    def _check_time(self) -> None:
        if self.clock.interrupts():
            raise Failed("there was no time for it", late=True)
