"""Runs models in processes of their own, and says what came of it.

Invariant: a process that is killed, hangs or crashes gives a Reply that says so; nothing it leaves behind outlives
`Bench`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

import numpy as np

from remat_cli.checking.child import UserProgram
from remat_cli.checking.feeds import nudged
from remat_cli.checking.metered import Failed, Kernel, MeteredProcess, Refused, Reply
from remat_cli.events import EventQueue
from remat_cli.formats import arrays
from remat_cli.formats.declared import declared
from remat_cli.model.sessions import Session
from solvers.clock import FOREVER_SECONDS, Clock
from solvers.placement.placed import Placement


@dataclass(frozen=True, slots=True)
class InPlace:
    """`in_place`: outputs, each with the input that it becomes in the next run; `bound`: it is written over that
    input."""

    in_place: Mapping[str, str] = field(default_factory=dict)
    bound: bool = False


NOWHERE = InPlace()
FOREVER = Clock(FOREVER_SECONDS)
TIME_UP = Reply(failed="time was up")


@dataclass(frozen=True, slots=True)
class BegunRun:
    """The run that begins, of how many; what runs, and how."""

    number: int
    total: int
    what: str

    def __str__(self) -> str:
        return f"run {self.number} of {self.total}: {self.what}"


@dataclass(slots=True)
class Bench:
    """A temporary folder with the feeds; `run` runs a model there. `timeout`: of each run; `clock`: of all. `level`: of
    default sessions' optimizations."""

    feeds: Mapping[str, Any]
    provider: str
    timeout: float
    threads: int = 0
    events: EventQueue[BegunRun] | None = None
    level: str = "all"
    clock: Clock = FOREVER
    count: int = 0
    total: int = 0
    scratch: TemporaryDirectory[str] = field(default_factory=lambda: TemporaryDirectory(prefix="remat-verify-"))

    @property
    def folder(self) -> Path:
        return Path(self.scratch.name)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.scratch.cleanup()

    def expect(self, runs: int) -> None:
        """Set how many runs are expected, as far as is known."""
        self.total = self.count + runs

    def run(
        self,
        model: Path,
        kind: Session,
        runs: int = 1,
        outputs: str | None = None,
        in_place: InPlace = NOWHERE,
        nudge: bool = False,
    ) -> Reply:
        """So many runs of `model` whose arena is counted, kernel by kernel; `outputs` names files in the folder for
        their results. `nudge`: with feeds that differ from the others in their last digits."""

        def steps(program: MeteredProcess) -> Reply:
            program.make()
            for number in range(runs):
                program.run()
                if outputs is not None:
                    program.keep(self.folder / f"{outputs}.{number}")
            kernels = [Kernel(*fields) for fields in program.tell("kernels")]
            ends = [number * len(kernels) // runs for number in range(runs + 1)]
            parts = [kernels[begin:end] for begin, end in pairwise(ends)]
            arena = tuple(max((kernel.most for kernel in part), default=0) for part in parts)
            return Reply(arena=arena, kernels=tuple(parts[0]))

        trace = str(self.folder / f"run{self.count + 1}.trace")
        return self._carry_out(model, kind, steps, f"in the {kind.name} session", in_place, nudge, trace=trace)

    def weigh(
        self,
        model: Path,
        kind: Session,
        placement: Placement | None = None,
        outputs: str | None = None,
        in_place: InPlace = NOWHERE,
        nudge: bool = False,
    ) -> Reply:
        """Two runs in a session as a user would make it, with the runtime's own allocator or the plan's: what does the
        process grow by? On a device, what does that hold beyond what it held before the session was made?

        Weights in files of their own are mapped, and first read in a run. Who asks counts all weights already.
        """

        def steps(program: MeteredProcess) -> Reply:
            on_device = self.provider == "cuda"
            if on_device:
                program.tell("watch_device")
            program.make()
            loading = program.peak
            program.tell("settle")
            loaded = program.held - program.mapped
            program.count()
            program.run()
            program.run()
            grew = program.tell("grown_on_device") if on_device else program.peak - program.mapped
            if outputs is not None:
                program.keep(self.folder / f"{outputs}.0")
            weighed = Reply(grew=grew, stray=program.tell("stray"))
            return weighed if on_device else replace(weighed, loaded=loaded, loading=loading)

        return self._carry_out(model, kind, steps, "weighed", in_place, nudge, placement=placement)

    def race(
        self,
        models: tuple[Path, Path],
        kind: Session,
        placement: Placement | None,
        seconds: float,
        inside: bool = False,
        in_place: InPlace = NOWHERE,
    ) -> Reply:
        """Runs of two models in turn; the first with the plan's allocator. `inside`: what each kernel takes, too."""

        def steps(program: MeteredProcess) -> Reply:
            program.make()
            trace = str(self.folder / f"run{self.count}.trace") if inside else None
            raced: Reply = declared(Reply, program.tell("race", str(models[1].resolve()), seconds, trace))
            return raced

        return self._carry_out(models[0], kind, steps, "weighed", in_place, placement=placement)

    def _carry_out(
        self,
        model: Path,
        kind: Session,
        steps: Callable[[MeteredProcess], Reply],
        what: str,
        in_place: InPlace,
        nudge: bool = False,
        **more: Any,
    ) -> Reply:
        """What the steps come to in a process of its own. `more`: what else a program has."""
        self.count += 1
        if self.events is not None:
            self.events.say(BegunRun(self.count, max(self.total, self.count), f"{model.name}, {what}"))
        if self.clock.interrupts():
            return TIME_UP
        left = self.clock.left()
        clock = Clock(min(left, self.timeout))
        feeds = self._nudged() if nudge else self._fed()
        more |= {"provider": self.provider, "level": self.level, **asdict(in_place)}
        try:
            with MeteredProcess(UserProgram(model, kind.runtime, self.threads, **more), feeds, clock) as program:
                return steps(program)
        except Failed as why:
            if isinstance(why, Refused):
                return Reply(refused=str(why))
            if not why.late:
                return Reply(failed=str(why))
            late = Reply(failed=f"it did not end within {clock.seconds:.3g} s", endless=True)
            return TIME_UP if left < self.timeout else late

    def _fed(self) -> Path:
        """The file of the feeds, which is written for the first run."""
        path = self.folder / "feeds.npz"
        if not path.is_file():
            arrays.write(self.feeds, path)
        return path

    def _nudged(self) -> Path:
        """A file of feeds that are moved in another way for each run."""
        path = self.folder / "nudged.npz"
        arrays.write(nudged(arrays.read(self._fed()), self.count), path)
        return path

    def results(self, outputs: str, runs: int = 1) -> list[np.ndarray]:
        """The results of each run, one after the other."""
        every = [arrays.read(self.folder / f"{outputs}.{number}") for number in range(runs)]
        return [found[f"output_{place}"] for found in every for place in range(len(found))]
