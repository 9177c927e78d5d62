"""What `shrink` does, on values: every way is tried, the cheapest first, and the best one's files are put in their
place.

Invariant: nothing is written but in a folder that is gone at the end, until `finish` moves whole files. Time that is
up, or a user who has had enough, leaves the ways that were tried by then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from remat_cli.actions.pieces_asked import AUTO, EXACT, OFF
from remat_cli.actions.seeing import of_inputs
from remat_cli.actions.shrinking.asked import MAX_SLOWER, ShrinkQuestion
from remat_cli.actions.shrinking.metering import SLOW_NS, WayTrials
from remat_cli.actions.shrinking.plans import (
    Free,
    PlanFiles,
    Wanted,
    hold_weights,
    laid_out,
    opened,
    plan_beside,
    planned,
    unmeasured,
    weights_beside,
    without_norms,
    write_files,
)
from remat_cli.actions.shrinking.preparing import fused, prepare
from remat_cli.actions.shrinking.sizes import check_sizes, judged_at, words_of, wrong_at
from remat_cli.actions.shrinking.truth import witness
from remat_cli.actions.shrinking.ways import AS_IT_IS, LEAN, PYTHON, C, Recommended, RunWay, TriedWay, choose
from remat_cli.checking.child import LEAN as LEAN_SESSION
from remat_cli.checking.child import STOCK as STOCK_SESSION
from remat_cli.checking.child import STRICT, UserProgram
from remat_cli.checking.metered import Failed
from remat_cli.errors import BadInput, InTheWay, RematError
from remat_cli.formats import placesfile
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.load import load
from remat_cli.onnx_graph.stored import files_beside
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.planned import Planned
from remat_cli.results.memory import Memory
from solvers.clock import Clock
from solvers.problem import Limits

WHOLE_SHARE = 0.15  # of the time that is left, for the order of whole ops
WHOLE, PIECES = "whole ops, planned", "in pieces"
FEWER = {"in fewer pieces": 0.4, "in few pieces": 0.75}  # how far from pieces to whole ops, by factors of memory
WORTH_TRYING = 1.2  # times what pieces hold: less is hardly another plan
PIECES_SHARE, LAST_SHARE = 0.4, 0.8  # for pieces; and for exact ones where bits changed, or fewer where they take long
CUTTING_SHARE = 0.7  # of the time for pieces, before they are ordered in this machine's layouts
RUNS_FOR_A_WAY, OF_SLOW_ONES = 9, 5  # about as many runs as one way is tried with, its places included


@dataclass(slots=True)
class Shrunk:
    """What was tried, in order, the model as it is first; `choice`: what is recommended, None where nothing ran yet.
    `others`: the same at other sizes, three rows for each.
    `files`: those that were written, what programs open last. `stopped`: whether time or the user's patience ended
    before all was tried. `seen`: what inputs decided of the model; `refused`: why there is no plan of it."""

    tried: list[TriedWay] = field(default_factory=list)
    files: tuple[Path, ...] = ()
    stopped: bool = False
    seen: str = ""
    refused: str = ""
    others: list[TriedWay] = field(default_factory=list)
    slower: float = MAX_SLOWER
    target: str = PYTHON

    @property
    def choice(self) -> Recommended | None:
        return choose(self.tried, self.slower) if self.tried and self.tried[0].ran else None


@dataclass(slots=True)
class Shrinking:
    """One question, with all that its answer takes. `clock`: where it limits work, each plan has its share of that, so
    that the plans are the same on every machine. `run` fills `found`, and `finish` puts the files of the best way so
    far in their place: whoever ends `run` early can still call it.

    `first`: the model as it is, against which all else is held. `held`: the bytes that each plan needs beside inputs
    and weights, by the name of the attempt; `runs`: how each way is run. `row` hears of each way as soon as it was
    tried, `doing` of what goes on."""

    model: Path
    output: Path
    folder: Path
    asked: ShrinkQuestion
    clock: Clock
    row: Callable[[TriedWay], object] = lambda _: None
    doing: Callable[[str], object] = lambda _: None
    memory: Memory | None = None
    found: Shrunk = field(default_factory=Shrunk)
    trials: WayTrials = field(init=False)
    first: TriedWay = field(init=False)
    held: dict[str, int] = field(default_factory=dict)
    runs: dict[str, UserProgram] = field(default_factory=dict)

    def run(self) -> None:
        self.found.slower, self.found.target = self.asked.slower, self.asked.target
        self.doing("reading the model")
        ready = prepare(self.model, self.asked, self.folder)
        self.found.seen = ready.seen
        graph = ready.graph
        if graph is not None:
            check_sizes(self.asked.also, graph)
        self.trials = WayTrials(ready.feeds, self.folder, partial(witness, self.model, graph, ready.feeds, self.folder))
        self.doing("running the model as it is")
        self.first = self._hear(self.trials.tried(AS_IT_IS, UserProgram(self.model, STOCK_SESSION), self._running))
        if not self.first.ran:
            if self.first.late:
                return
            raise BadInput(f"onnxruntime cannot run {self.model}: {self.first.failed}")
        self.doing("running it with arena and memory pattern off")
        self._hear(self.trials.tried(LEAN, UserProgram(self.model, LEAN_SESSION), self._running))
        try:
            if graph is None:
                raise BadInput(ready.refused)
            self._plan(graph)
            self._judge_others(graph)
        except RematError as error:  # what needs no plan was measured all the same
            self.found.refused = str(error)

    def _plan(self, graph: Graph) -> None:
        if self._is_over():
            return
        free, whole = self._whole(graph)
        attempt = _Attempt(WHOLE, Wanted(OFF), WHOLE_SHARE, free)
        feeds = self.trials.feeds
        self._try(unmeasured(whole, feeds, free.sizes if free else {}), attempt)
        if free is not None or self._is_over():  # pieces are of one size
            return
        plain = fused(self.model, graph, self.folder, layouts=False)
        whole_norms, slower = unmeasured(plain, feeds), self.asked.slower
        subject = without_norms(whole_norms, feeds, self.folder)
        tried = self._try(subject, _Attempt(PIECES, Wanted(AUTO, slower), PIECES_SHARE))
        if tried is None or not tried.ran or self._is_over():
            return
        if self._takes_long(tried):
            self._try_fewer(subject)
        elif not tried.outputs.same and self.trials.is_same(UserProgram(plain, STRICT), self._running):
            self._try(whole_norms, _Attempt("in exact pieces", Wanted(EXACT, slower), LAST_SHARE))

    def _whole(self, graph: Graph) -> tuple[Free | None, Path]:
        """The model fused for whole ops. Its dimensions stay free for several sizes, and where a branch that these
        inputs do not take does not go with their sizes."""
        free = Free(load(self.model)[0], of_inputs(graph))
        if not self.asked.also:
            try:
                return None, fused(self.model, graph, self.folder, self.checks_layouts)
            except BadInput:
                if not free.sizes:
                    raise
        return free, fused(self.model, graph, self.folder, self.checks_layouts, free.given)

    def _try_fewer(self, subject: Subject) -> None:
        """Ever fewer pieces that hold more, until they are in time."""
        least, whole = self.held[PIECES], self.held.get(WHOLE, 0)
        for name, share in FEWER.items():
            most = round(least ** (1 - share) * whole**share)
            if most < WORTH_TRYING * least or self._is_over():
                return
            wanted = Wanted(AUTO, most=subject.problem.resident + most)
            tried = self._try(subject, _Attempt(name, wanted, LAST_SHARE))
            if tried is not None and (not tried.ran or not self._takes_long(tried)):
                return

    def _judge_others(self, graph: Graph) -> None:
        """Hold the best way so far to the other sizes."""
        for number, sizes in enumerate(self.asked.also):
            choice = self.found.choice
            if choice is None or choice.best.way.name not in self.runs or self._is_over():
                return
            way = choice.best.way
            self.doing(f"running at {words_of(sizes)}")
            there = replace(self.asked, feeds=None, dims={**graph.dims, **sizes})
            best = way, self.runs[way.name]
            for row in judged_at(self.model, there, sizes, best, self.folder / f"size{number}", self._running):
                self.found.others.append(row)
                self.row(row)
            if why := wrong_at(row, sizes):
                place = self.found.tried.index(choice.best)
                self.found.tried[place] = replace(choice.best, failed=why)

    @property
    def checks_layouts(self) -> bool:
        """Whether a file may have this machine's layouts: where it is opened by remat, which refuses it elsewhere."""
        return self.asked.target == PYTHON

    def finish(self) -> Shrunk:
        """Move whole files to where they belong, what programs open last."""
        choice = self.found.choice
        if choice is not None:
            places = tuple(self.output.parent / file.name for file in choice.best.files)
            for file, place in zip(choice.best.files, places, strict=True):
                os.replace(file, place)
            self.found.files = places
        return self.found

    @property
    def _seconds(self) -> float:
        """About how long it takes to try a plan."""
        return (RUNS_FOR_A_WAY if self.first.ns <= SLOW_NS else OF_SLOW_ONES) * self.first.ns / 1e9

    @property
    def _running(self) -> Clock:
        """The clock for runs: work is limited for searches alone."""
        return self.clock.timed()

    def _is_over(self) -> bool:
        self.found.stopped = self.found.stopped or self._running.over() or self.clock.left() < self._seconds
        return self.found.stopped

    def _takes_long(self, tried: TriedWay) -> bool:
        return tried.ns > (1 + self.asked.slower) * self.first.ns

    def _try(self, subject: Subject, attempt: _Attempt) -> TriedWay | None:
        """What was measured last: of the plan, and where that takes long, of the same with all weights held; nothing
        where there is none that whole ops do not do as well."""
        self.doing(f"planning: {attempt.name}")
        seconds = attempt.share * (self.clock.left() - self._seconds)
        clock = self.clock.share(attempt.share).within(seconds)
        plan = self._planned(subject, attempt, Limits(clock, seed=self.asked.seed))
        if plan is None:
            return None
        self.held[attempt.name] = plan.recorded.peak - plan.recorded.resident
        self.doing(f"running: {attempt.name}")
        way = RunWay(attempt.name, opened(self.output, self.asked.target), written=True)
        place, whole = self.folder / attempt.place, Limits(self._running, seed=self.asked.seed)
        try:
            made = write_files(
                plan, place / self.output.name, self.asked.target, self.trials.feeds, whole, attempt.free
            )
        except Failed as why:
            return self._hear(TriedWay(way, failed=str(why), late=why.late))
        found = self._run(way, made)
        if not (made.lets_go and found.ran and self._takes_long(found)) or self._running.over():
            return found
        way = replace(way, name=f"{attempt.name}, weights held")
        self.doing(f"running: {way.name}")
        return self._run(way, hold_weights(made, place.with_name(f"{place.name}-held")))

    def _run(self, way: RunWay, made: PlanFiles) -> TriedWay:
        self.runs[way.name] = made.run
        return self._hear(self.trials.tried(way, made.run, self._running, made.files))

    def _planned(self, subject: Subject, attempt: _Attempt, limits: Limits) -> Planned | None:
        wanted = attempt.wanted
        if wanted.pieces == OFF:
            return planned(subject, wanted, limits, self.memory)
        cut = planned(subject, wanted, limits.share(CUTTING_SHARE), self.memory)
        if cut is None or not cut.recorded.pieces:
            return None
        if not self.checks_layouts:
            return cut
        return laid_out(cut, self.folder / f"{attempt.place}.onnx", self.trials.feeds, limits) or cut

    def _hear(self, tried: TriedWay) -> TriedWay:
        self.found.tried.append(tried)
        self.found.stopped = self.found.stopped or tried.late
        self.row(tried)
        return tried


@contextmanager
def folder_for(output: Path) -> Iterator[Path]:
    """A folder beside the output, where files are made that are moved there whole."""
    try:
        made = TemporaryDirectory(prefix=".remat-shrink-", dir=output.resolve().parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise BadInput(f"cannot write {output}: {error.strerror}: {output.parent}") from error
    with made as folder:
        yield Path(folder)


def check_places(output: Path, target: str, model: Path) -> None:
    """Refuse a place where something else stands."""
    check_place(output, FileKind.MODEL, model)
    weights = weights_beside(output)
    if weights.exists() and (not output.exists() or _reads(model, weights)):
        raise InTheWay(f"{weights} is in the way: {output.name} has its weights there; write elsewhere")
    if target == PYTHON:
        check_place(plan_beside(output), FileKind.PLAN, model)
    if target == C:
        check_place(placesfile.beside(output), FileKind.PLACES, model)


def _reads(model: Path, file: Path) -> bool:
    """Whether the model has tensors in that file."""
    return any(own.exists() and own.samefile(file) for own in files_beside(load(model)[0], model))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What is wanted, and its share of the time that is left."""

    name: str
    wanted: Wanted
    share: float
    free: Free | None = None

    @property
    def place(self) -> str:
        return self.name.replace(" ", "-")
