"""What `profile` does, on values: signatures, measurements, the whole graph, and costs for every op.

Invariant: nothing here prints, nor writes more than it is told to and the cache of what was measured; every op of the
graph gets a cost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import onnx

from profiles import cache as caches
from profiles import device as devices
from profiles import records, roofline, survey
from profiles.bench import TIME_UP
from profiles.cache import Cache
from profiles.costfile import dump, load
from profiles.costs import BadCosts, Costs, OpCost, over_batches
from profiles.device import Device
from profiles.running import CannotRun
from profiles.survey import Ops, SurveyProgress
from profiles.system import busy_threads
from profiles.totals import Totals
from remat_cli.actions import whole_graph
from remat_cli.actions.observing import Observed, observe
from remat_cli.actions.seeing import graph_as_seen, words
from remat_cli.actions.whole_graph import ProfiledGraph, refuse_endless, scale_to_whole, time_before
from remat_cli.errors import BadInput, Usage, meant
from remat_cli.events import EventQueue
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.ingest import ingest
from remat_cli.model.graph import Graph
from remat_cli.model.quantities import parse_seconds
from remat_cli.model.sessions import DEFAULT, STRICT, Session
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import target_of
from remat_cli.planning.time_plan import ENDING_SHARE
from remat_cli.usual import PROFILE_TIME
from solvers.clock import Clock
from solvers.notes import Note

SEEN = "strict and default, op by op, functions beside"  # how a model is seen: what was seen otherwise is seen anew
NAMED_OPS = 5  # of the ops that could not be measured
NOW = SurveyProgress(0, 0, "how fast this machine is now", 0.0)
WHOLE = SurveyProgress(0, 0, "the whole graph", 0.0)
MEMORY = SurveyProgress(0, 0, "what the whole graph holds", 0.0)
MEASURING_SHARE = 0.8  # of the time left, at most, for the ops by themselves
Steps = EventQueue[SurveyProgress]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileQuestion:
    """How to find the costs. `estimate`: a device from paper, and nothing is run. `batches`: one profile for each size.

    `strict`: an op that cannot be measured is an error. `whole`: the whole graph is run too. `seconds`: for all of it.
    """

    device: str = "auto"
    estimate: str | None = None
    threads: int | None = None
    batches: tuple[int, ...] | None = None
    batch_dim: str | None = None
    strict: bool = False
    cached: bool = True
    whole: bool = True
    seconds: float = parse_seconds(PROFILE_TIME)
    dims: Mapping[str, int] = field(default_factory=dict)
    session: Session = STRICT  # of another kind: kernels that only it has are measured, not estimated


@dataclass(frozen=True, slots=True)
class Profiled:
    """One graph's costs, and what is to be said of them."""

    graph: Graph
    ops: Ops
    costs: Costs
    device: Device
    refused: Mapping[str, str]
    measured: int = 0  # signatures measured just now
    outliers: tuple[str, ...] = ()  # classes of ops that take several times as long in the graph as alone, or less
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """What there is to measure, and about how long it takes."""

    ops: int
    signatures: int
    cached: int
    seconds: float


def profile(
    model: Path | onnx.ModelProto, asked: ProfileQuestion, steps: Steps | None = None, clock: Clock | None = None
) -> Profiled:
    """The costs of the model's ops; with batches, those of the largest, with a line through all for each op. `steps`:
    what is being done, where somebody reads it. `clock`: one that ran before this began, if there is one."""
    steps, clock = steps or Steps(), clock or Clock(asked.seconds)
    device, cache = _where(asked)
    steps.say(SurveyProgress(0, 0, "reading the model", 0.0))
    graphs = _graphs(model, asked, None if asked.estimate else device)
    clock = clock.before_ending(ENDING_SHARE)
    found = []
    for place, graph in enumerate(graphs):
        found.append(_profile(graph, device, cache, asked, clock.share(1 / (len(graphs) - place)), steps))
    if len(found) == 1:
        return found[0]
    name = whole_graph.batch_dim(model, asked.batch_dim, asked.dims)
    return replace(found[-1], costs=over_batches({one.costs.dims[name]: one.costs for one in found}, name))


def write(found: Profiled, model: Path, destination: Path) -> Costs:
    """The costs as they are in the file, which an earlier file's pinned entries outlive."""
    check_place(destination, FileKind.COSTS, model)
    costs = replace(found.costs, model=os.path.relpath(model.resolve(), destination.resolve().parent))
    if destination.is_file():
        try:
            costs = costs.keeping_pins(load(destination))
        except BadCosts as error:
            raise BadInput(f"{error}; correct it, or delete it to have it made anew") from error
    write_whole(destination, dump(costs))
    return costs


def ahead(model: Path | onnx.ModelProto, asked: ProfileQuestion) -> Ahead:
    """What `profile` would do."""
    device, cache = _where(asked)
    found = _graphs(model, asked, None if asked.estimate else device)
    graphs = [_together(ops_of(graph), _new_kernels(graph), asked) for graph in found]
    wanted = {key for ops in graphs for key in survey.missing(ops, cache)}
    distinct = {key for ops in graphs for key in ops.distinct()}
    seconds = 0.0 if asked.estimate else survey.how_long(graphs, cache, device, asked.seconds)
    count = sum(len(ops.signatures) for ops in graphs)
    return Ahead(count, len(distinct), len(distinct) - len(wanted), round(seconds, 1))


def _where(asked: ProfileQuestion) -> tuple[Device, Cache]:
    known = [*roofline.names(), roofline.FLOPS]
    if asked.estimate is not None and asked.estimate not in known:
        raise Usage(f"there is no device '{asked.estimate}' on paper; {meant(asked.estimate, known)}")
    if asked.device not in ("auto", "cpu", "cuda"):
        raise Usage(f"there is no device '{asked.device}'; there are auto, cpu and cuda")
    try:
        device = devices.find(asked.device, asked.threads)
    except devices.NoDevice as error:
        raise Usage(str(error)) from error
    return device, Cache(device, caches.folder() if asked.cached else None)


def _graphs(model: Path | onnx.ModelProto, asked: ProfileQuestion, device: Device | None) -> list[Graph]:
    """The model with its dimensions bound: once, or once for each batch size, the largest last."""
    if not asked.batches:
        if asked.batch_dim is not None:
            raise Usage("--batch-dim says which dimension --batch sets: give both, or bind it with --dim NAME=SIZE")
        return [_graph(model, asked.dims, device)]
    name = whole_graph.batch_dim(model, asked.batch_dim, asked.dims)
    return [_graph(model, {**asked.dims, name: size}, device) for size in sorted(asked.batches)]


def _graph(model: Path | onnx.ModelProto, dims: Mapping[str, int], device: Device | None) -> Graph:
    """Sizes that depend on data are seen, unless nothing is to be run."""
    return ingest(model, dims) if device is None else graph_as_seen(partial(ingest, model), dims, device)


def _profile(
    graph: Graph, device: Device, cache: Cache, asked: ProfileQuestion, clock: Clock, steps: Steps
) -> Profiled:
    ops, kernels = ops_of(graph), _new_kernels(graph)
    if asked.estimate is not None:
        return _from_paper(graph, ops, kernels, device, asked.estimate)
    work = ProfiledGraph(graph, ops, device, cache, asked.whole, clock)
    steps.say(NOW)
    day: tuple[str, ...] = ()
    if device.kind == "cpu":
        day = survey.held_against_now(ops, device, cache, monotonic() + clock.left())
    both = _together(ops, kernels, asked)
    wanted = len(survey.missing(both, cache))
    notes, busy = tuple(Note(PlanNote.PROBE_SAYS, (said,)) for said in day), _busy(device) if wanted else ()
    steps.say(WHOLE)
    earlier = time_before(work)
    left, until = work.seconds(MEASURING_SHARE)
    for step in survey.measure_missing(both, device, cache, left, until):
        steps.say(step)
    if unmeasured := len(survey.missing(both, cache)):
        if asked.strict:
            late = f"time was up before {unmeasured} of {len(both.distinct())} kinds of op were measured"
            raise BadInput(f"{graph.path}: {late}; give more with --time-limit, or leave out --strict")
        notes = (*notes, Note(PlanNote.PROFILED_IN_PART, (unmeasured, len(both.distinct()))))
        work = replace(work, whole=False)  # it would be held against estimates
    refused = survey.refused(ops, cache)
    if refused and asked.strict:
        raise BadInput(f"{graph.path}: {named_refused(refused, ops)}; without --strict they are estimated")
    alone = survey.alone(ops, cache, device)
    steps.say(WHOLE)
    costs, whole = scale_to_whole(work, alone, earlier)
    found = _costs(graph, device.described(), costs, whole, survey.dated(ops, cache))
    found = replace(found, kernels=records.costs_of_kernels(kernels, ops, alone, device, cache))
    waited = found.whole.waited
    notes = (*notes, *(busy if waited is None else (Note(PlanNote.MEASURED_WHILE_BUSY, (waited,)),)))
    if asked.whole and device.kind == "cpu":
        steps.say(MEMORY)
        found = _seen(graph, ops, found, cache, device, clock)
    if seen := words(graph, asked.dims):
        found = replace(found, whole=replace(found.whole, seen=seen))
        notes = (*notes, Note(PlanNote.SEEN_IN_A_RUN, (seen,)))
    if unlike := found.whole.unlike:
        notes = (*notes, Note(PlanNote.PROFILED_UNLIKE, (unlike,)))
    if sizes := found.whole.by_functions:
        notes = (*notes, Note(PlanNote.BY_FUNCTIONS, sizes))
    if why := found.whole.not_run:
        notes = (*notes, Note(PlanNote.PROFILED_NOT_RUN, (why,)))
    measured = wanted - unmeasured
    return Profiled(graph, ops, found, device, refused, measured, tuple(records.outliers(ops, alone, costs)), notes)


def _new_kernels(graph: Graph) -> Ops:
    return target_of(DEFAULT).new_kernels(graph)


def _together(ops: Ops, kernels: Ops, asked: ProfileQuestion) -> Ops:
    """What is to be measured, in one go."""
    return ops if asked.session.keeps_order else records.with_kernels(ops, kernels)


def _seen(graph: Graph, ops: Ops, costs: Costs, cache: Cache, device: Device, clock: Clock) -> Costs:
    """The costs with what a run of the original in the strict session shows; seen once, that is kept."""
    key = f"{graph.sha256} {dict(graph.dims)} {SEEN}"
    if cache.seen.get(key):
        return Observed(**cache.seen[key]).into(costs)
    if clock.over():  # feeds take long to draw
        return Observed(not_run=TIME_UP).into(costs)
    try:
        whole_graph.check_room(graph, costs.ops, device)
    except CannotRun:
        return costs
    found = observe(graph, costs, feeds_of(graph, ops), costs.threads, clock)
    if found.endless:
        refuse_endless(graph, found.not_run)
    if not found.not_run:
        cache.keep_seen(key, asdict(found), costs.date)
    return found.into(costs)


def _from_paper(graph: Graph, ops: Ops, kernels: Ops, device: Device, where: str) -> Profiled:
    ops_costs, others = survey.estimated(ops, where), survey.estimated(kernels, where)
    if where == roofline.FLOPS:
        kind = {"kind": "paper", "name": "FLOPs: one takes one unit of time"}
        costs = replace(_costs(graph, kind, ops_costs, Totals(), ""), unit="flops", kernels=others)
        return Profiled(graph, ops, costs, device, {})
    paper = roofline.device(where)
    kind = {"kind": "paper", "name": paper.name, "source": paper.source}
    return Profiled(graph, ops, replace(_costs(graph, kind, ops_costs, Totals(), ""), kernels=others), device, {})


def _costs(graph: Graph, device: Mapping[str, Any], ops: Mapping[str, OpCost], whole: Totals, date: str) -> Costs:
    return Costs(graph.path.name, graph.sha256, graph.dims, device, ops, whole, date)


def _busy(device: Device) -> tuple[Note, ...]:
    """Other people's work on this machine ends up in the times."""
    busy = busy_threads()
    return () if busy <= 0.5 * device.threads else (Note(PlanNote.PROFILED_WHILE_BUSY, (busy,)),)


def named_refused(refused: Mapping[str, str], ops: Ops) -> str:
    kinds: dict[str, list[str]] = {}
    for name in refused:
        kinds.setdefault(ops.signatures[name].op_type, []).append(name)
    words = [
        f"{kind} ({names[0]}{', ...' if len(names) > 1 else ''}: {refused[names[0]]})" for kind, names in kinds.items()
    ]
    more = f" and {len(words) - NAMED_OPS} more kinds" if len(words) > NAMED_OPS else ""
    return f"{len(refused)} ops cannot be measured: {'; '.join(words[:NAMED_OPS])}{more}"
