"""Plans of a prepared model, as files that stand by themselves: a model that runs in the plan's order, its weights in a
file that is mapped, and its places as runs showed them.

Invariant: what is measured are the very files that the user gets.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import onnx

from profiles import device as devices
from profiles.running import CannotRun
from remat_cli.actions import emitting
from remat_cli.actions.answering import WholeQuestion, answer_whole
from remat_cli.actions.optimizing import fuse
from remat_cli.actions.pieces_asked import OFF, PiecesAsked
from remat_cli.actions.questions import Question
from remat_cli.actions.seeing import graph_as_seen
from remat_cli.actions.session_writing import kept_of, weights_of
from remat_cli.actions.shrinking.norms import written_out
from remat_cli.actions.shrinking.preparing import freed
from remat_cli.actions.shrinking.ways import LEAN, PYTHON, C
from remat_cli.checking.child import IN_C, PLANNED, STRICT, UserProgram
from remat_cli.checking.child import LEAN as LEAN_SESSION
from remat_cli.checking.feeds import arrays_in
from remat_cli.checking.metered import MeteredProcess
from remat_cli.formats import placesfile, planfile
from remat_cli.formats.files import write_whole
from remat_cli.formats.planfile import RecordedPlaces, places_of
from remat_cli.ingest import ingest
from remat_cli.ingest.shapes import UnknownSize
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import DEFAULT as STOCK_SESSION
from remat_cli.model.sessions import STRICT as STRICT_SESSION
from remat_cli.onnx_graph.stored import put_apart
from remat_cli.planning.kinds import target_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.untouched import fitting_already
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.keeping import plan_file
from remat_cli.plans.planned import Planned
from remat_cli.results.memory import Memory
from remat_cli.runtime.optimized import is_laid_out, layout_block
from solvers.problem import Limits
from solvers.registry import DEFAULT

MERGES = ("CommonSubexpressionElimination",)  # what is computed again, into what it was computed first
NORMS = "norms.onnx"
NO_SIZES: Mapping[str, int] = {}  # of dimensions that are free
ANY_BYTES = 1 << 60  # more than any model holds


@dataclass(frozen=True, slots=True)
class Free:
    """Dimensions that stay free: as the model was `given`, and the `sizes` that are planned."""

    given: onnx.ModelProto
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """A plan's files, the one that programs open last, and how they are run. `lets_go`: whether of weights."""

    run: UserProgram
    files: tuple[Path, ...]
    lets_go: bool = False


def unmeasured(model: Path, feeds: Path, sizes: Mapping[str, int] = NO_SIZES) -> Subject:
    """The subject without costs; sizes that depend on data are as the feeds make them."""
    try:
        return load_subject(model, None, sizes, STRICT_SESSION)
    except UnknownSize:
        seen = graph_as_seen(partial(ingest, model), sizes, devices.find("cpu"), arrays_in(feeds))
        return load_subject(model, None, seen.dims, STRICT_SESSION)


def without_norms(subject: Subject, feeds: Path, folder: Path) -> Subject:
    """The model with wide normalizations written out, where it has any."""
    made = None if subject.graph is None else written_out(subject.graph)
    if made is None:
        return subject
    write_whole(folder / NORMS, made.SerializeToString(deterministic=True))
    return unmeasured(folder / NORMS, feeds)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How ops are cut. `most`: bytes to hold at most, in the least time; without them, the least that adds the share
    `slower` to the time at most."""

    pieces: str
    slower: float = 0.0
    most: int | None = None

    @property
    def question(self) -> Question:
        if self.most is not None:
            return Question(budget=Budget(Fraction(self.most)))
        return Question(minimize="peak", max_overhead=max(0.0, self.slower))


def planned(subject: Subject, wanted: Wanted, limits: Limits, memory: Memory | None) -> Planned | None:
    """The plan that is wanted; None where none was found."""
    cuts = PiecesAsked(how=wanted.pieces)
    asked = WholeQuestion(
        subject=subject, question=wanted.question, limits=limits, memory=memory, cuts=cuts, offers=False
    )
    found = answer_whole(asked).found
    return Planned(plan_file(found), found.subject) if found.found else None


def laid_out(plan: Planned, path: Path, feeds: Path, limits: Limits) -> Planned | None:
    """The plan's ops, in pieces or whole, in the layouts that a stock session chooses for this machine, which it does
    around pieces too; in an order of their own, as there are others to convert layouts."""
    emitted = emitting.emit(plan).model
    try:
        made = fuse(emitted, path.parent, plan.recorded.model.sha256, without=MERGES)
    except CannotRun:
        return None
    write_whole(path, made.SerializeToString(deterministic=True))
    return planned(unmeasured(path, feeds), Wanted(OFF), limits, None)


def write_files(
    plan: Planned, path: Path, target: str, feeds: Path, limits: Limits, free: Free | None = None
) -> PlanFiles:
    """The files of the plan, in a folder of their own. Runs let go of weights where these are many. Raises Failed."""
    folder, threads = path.parent, devices.find("cpu").threads
    folder.mkdir()
    apart = weights_beside(path)
    model = emitting.emit(plan).model if target == PYTHON else _robust(plan)
    if free is not None:
        model = freed(model, free.given)
    put_apart(model, folder, apart.name)
    write_whole(path, model.SerializeToString(deterministic=True))
    weights = [apart] if apart.exists() else []
    if target not in (C, PYTHON):
        return PlanFiles(UserProgram(path, LEAN_SESSION, threads), (*weights, path))
    kind = IN_C if target == C else STRICT
    with MeteredProcess(UserProgram(path, kind, threads), feeds, limits.clock) as program:
        seen = program.places()
    kept = kept_of(model, folder)
    if target == C:
        places = placesfile.beside(path)
        lazy = None if kept is None else weights_of(model, folder, kept)
        placesfile.write(seen, places, lazy)
        return PlanFiles(UserProgram(path, IN_C, threads), (*weights, path, places), lazy is not None)
    layout = layout_block() if any(map(is_laid_out, model.graph.node)) else None
    shown = places_of(seen, threads=threads, layout=layout, weights=kept)
    subject = unmeasured(path, feeds, free.sizes if free else {})
    opened = _plan_of_file(path, subject, shown, limits)
    return PlanFiles(UserProgram(opened, PLANNED, threads), (*weights, path, opened), kept is not None)


def hold_weights(made: PlanFiles, folder: Path) -> PlanFiles:
    """The same files in another folder, whose runs let go of no weights."""
    folder.mkdir()
    files = tuple(folder / file.name for file in made.files)
    for old, new in zip(made.files, files, strict=True):
        shutil.copyfile(old, new)  # onnx refuses weights in a file that is linked twice
    opened = files[-1]
    run = replace(made.run, model=files[-1] if made.run.model == made.files[-1] else files[-2])
    held = replace(made, run=run, files=files, lets_go=False)
    if made.run.session == IN_C:
        placesfile.write(placesfile.read(opened).placement, opened)
        return held
    plan = planfile.read(opened)
    planfile.write(replace(plan, placement=plan.placement and replace(plan.placement, weights=None)), opened)
    return held


def _robust(plan: Planned) -> onnx.ModelProto:
    """The model of the plan for sessions that order nodes and keep idle buffers as they like: it holds its order
    itself, and hides shapes where buffers would wait."""
    return target_of(STOCK_SESSION).rewrite(plan.subject, plan.replayed()[0]).model


def _plan_of_file(path: Path, subject: Subject, seen: RecordedPlaces, limits: Limits) -> Path:
    """A plan that runs the file as it stands, its values where runs of it had them."""
    found = fitting_already(subject, ANY_BYTES, DEFAULT, limits, STRICT_SESSION)
    assert found is not None
    made = plan_file(found)
    held = subject.problem.resident + seen.block
    promise = replace(made.promises, arena=held, block=seen.block)
    plan = plan_beside(path)
    planfile.write(replace(made, budget=max(held, made.peak), placement=seen, promises=promise), plan)
    return plan


def weights_beside(model: Path) -> Path:
    return model.with_name(f"{model.name}.data")


def plan_beside(model: Path) -> Path:
    return model.with_name(model.name.removesuffix(".onnx") + ".plan.json")


def opened(output: Path, target: str) -> str:
    """What a program opens."""
    if target == PYTHON:
        return f'remat_cli.session("{plan_beside(output).name}")'
    return f"{output.name} with {placesfile.beside(output).name}" if target == C else f"{output.name}, {LEAN.sets}"
