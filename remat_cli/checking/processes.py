"""Runs models in processes of their own, and reads their replies.

Invariant: a child that is killed, hangs or crashes gives a Reply that says so; nothing it leaves behind outlives
`Bench`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from remat_cli.checking.child import Reply, Request
from remat_cli.checking.feeds import nudged
from remat_cli.children import Child
from remat_cli.events import EventQueue
from remat_cli.formats import arrays
from remat_cli.formats.declared import declared
from remat_cli.model.sessions import Session
from solvers.clock import FOREVER_SECONDS, Clock
from solvers.placement.largest import Placement


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


class Bench:
    """A temporary folder with the feeds; `run` runs a model there."""

    def __init__(
        self,
        feeds: Mapping[str, Any],
        provider: str,
        timeout: float,
        threads: int = 0,
        events: EventQueue[BegunRun] | None = None,
        level: str = "all",
        clock: Clock = FOREVER,
    ) -> None:
        self.clock = clock  # for all runs; each has `timeout` as well
        self.level = level  # the optimization level of default sessions
        self.provider = provider
        self.timeout = timeout
        self.threads = threads
        self.scratch = tempfile.TemporaryDirectory(prefix="remat-verify-")
        self.folder = Path(self.scratch.name)
        self.events = events
        self.count = self.total = 0
        self.feeds = feeds

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
        traced: bool = True,
        **asked: Any,
    ) -> Reply:
        """Run one session on `model`; `outputs` names a file in the folder for the results. `nudge`: with feeds that
        differ from the others in their last digits. `asked`: what else a request has."""
        self.count += 1
        what = "weighed" if asked.get("weigh") else f"in the {kind.name} session"
        if self.events is not None:
            self.events.say(BegunRun(self.count, max(self.total, self.count), f"{model.name}, {what}"))
        if self.clock.interrupts():
            return TIME_UP
        request = Request(
            model=str(model.resolve()),
            feeds=str(self._nudged() if nudge else self._fed()),
            runtime=kind.runtime,
            provider=self.provider,
            runs=runs,
            threads=self.threads,
            level=self.level,
            outputs=str(self.folder / outputs) if outputs else None,
            trace=str(self.folder / f"run{self.count}.trace") if traced else None,
            **asdict(in_place),
            **asked,
        )
        left = self.clock.left()
        found = _carry_out(request, Clock(min(left, self.timeout)))
        return TIME_UP if found.endless and left < self.timeout else found

    def weigh(self, model: Path, kind: Session, placement: Placement | None = None, **asked: Any) -> Reply:
        """Two runs without a trace, with the runtime's own allocator or the plan's: what does the process grow by?"""
        return self.run(model, kind, 2, traced=False, weigh=True, placement=placement, **asked)

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
        asked: dict[str, Any] = {"placement": placement, "seconds": seconds, "against": str(models[1].resolve())}
        return self.run(models[0], kind, in_place=in_place, traced=inside, weigh=True, **asked)

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


def _carry_out(request: Request, clock: Clock) -> Reply:
    def look() -> None:
        if clock.over():
            raise TimeoutError

    with Child("remat_cli.checking.child") as child:
        try:
            said = child.ask(asdict(request), look)
        except TimeoutError:
            return Reply(failed=f"it did not end within {clock.seconds:.3g} s", endless=True)
        found: Reply = Reply(failed=child.why()) if said is None else declared(Reply, said)
        return found
