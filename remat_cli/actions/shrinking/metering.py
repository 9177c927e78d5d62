"""Tries one way of running a model: a process of its own, some runs, and its outputs held against those of the model as
it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np

from profiles.device import find, free_memory
from remat_cli.actions.shrinking.ways import Outputs, RunWay, TriedWay, compared, judged
from remat_cli.checking.child import UserProgram
from remat_cli.checking.metered import Failed, MeteredProcess
from remat_cli.checking.weight import COUNTED
from remat_cli.errors import BadInput
from remat_cli.formats import arrays
from solvers.clock import Clock

NO_COUNT = "shrink reads what a process holds from /proc, which is on Linux alone"
MOST_RUNS = 20  # after the first, which makes what later ones find
RUNS_SECONDS, TURNS_SECONDS = 2.5, 5.0  # as many runs, or runs of two in turns, as these have room for, at least one
SLOW_NS = 10_000_000_000  # runs that take longer are not made in turns, which would take three more of each way
ROOM = 1.2  # times what the first way holds must be free, where it runs beside another


class WayTrials:
    """`feeds`: the file of the inputs. The first way that is tried is the one that all others are held against: to its
    outputs, and to its time, in turns, so that whatever else this machine does meets both, if it is not slow.
    `witness`: makes what says how the model rounds."""

    def __init__(self, feeds: Path, folder: Path, witness: Callable[[], UserProgram]) -> None:
        if not COUNTED:
            raise BadInput(NO_COUNT)
        self.feeds, self.folder, self.witness = feeds, folder, cache(witness)
        self.first: tuple[UserProgram, TriedWay] | None = None
        self.right: list[np.ndarray] = []
        self.true: list[np.ndarray] | None = None

    def tried(self, way: RunWay, run: UserProgram, clock: Clock, files: tuple[Path, ...] = ()) -> TriedWay:
        try:
            with MeteredProcess(run, self.feeds, clock) as program:
                found, results = self._metered(way, program)
                found = replace(found, files=files)
                if self.first is None:
                    self.first, self.right = (run, found), results
                    return found
                found = replace(found, ns=self._in_turns(program, found, clock))
            return replace(found, outputs=self._compared(results, clock))
        except Failed as why:
            return TriedWay(way, failed=str(why), late=why.late)

    def _metered(self, way: RunWay, program: MeteredProcess) -> tuple[TriedWay, list[np.ndarray]]:
        program.make()
        loading = program.peak
        program.run()
        for _ in _turns():
            program.run()
        peak, held = program.peak, program.held
        return TriedWay(way, peak, loading, held, min(program.times[1:])), self._results(program)

    def _compared(self, results: list[np.ndarray], clock: Clock) -> Outputs:
        found = compared(self.right, results)
        if found.near:
            return found
        try:
            self.true = self.true or self._once(self.witness(), clock)
        except Failed:
            return found
        return judged(found, self.true, self.right, results)

    def is_same(self, run: UserProgram, clock: Clock) -> bool:
        """Whether a run gives the bits of the first way."""
        try:
            return compared(self.right, self._once(run, clock)).same
        except Failed:
            return False

    def _once(self, run: UserProgram, clock: Clock) -> list[np.ndarray]:
        """The outputs of a run. Raises Failed."""
        with MeteredProcess(run, self.feeds, clock) as program:
            program.make()
            program.run()
            return self._results(program)

    def _results(self, program: MeteredProcess) -> list[np.ndarray]:
        path = self.folder / "outputs.npz"
        program.keep(path)
        return list(arrays.read(path).values())

    def _in_turns(self, program: MeteredProcess, found: TriedWay, clock: Clock) -> int:
        """ns of its run, by how it compares with the first way at the same time: of each two runs, one after another,
        the second as a share of the first, and of these the median. A burst of other work meets some runs alone."""
        assert self.first is not None
        run, first = self.first
        if first.ns > SLOW_NS or free_memory(find("cpu")) < ROOM * first.peak:
            return found.ns
        with MeteredProcess(run, self.feeds, clock) as other:
            other.make()
            other.run()
            shares = []
            for _ in _turns(TURNS_SECONDS):
                program.rest()
                before = other.run()
                other.rest()
                shares.append(program.run() / max(1, before))
        return round(first.ns * median(shares))


def _turns(seconds: float = RUNS_SECONDS) -> Iterator[None]:
    """At least one turn, and as many as there is room for."""
    begun = monotonic()
    for turn in range(MOST_RUNS):
        if turn and monotonic() - begun > seconds:
            return
        yield
