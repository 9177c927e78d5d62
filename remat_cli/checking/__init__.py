"""The proof on the real runtime: it runs both models, compares their bytes, measures their peaks and enforces the
budget.

Invariant: no figure of the plan is trusted; every figure in a Report was measured in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from remat_cli.checking.compare import EXACT, IN_PIECES, Difference, Tolerance, compare, noise_of, without
from remat_cli.checking.exactness import Exactness, judge
from remat_cli.checking.metered import Reply
from remat_cli.checking.processes import TIME_UP, Bench, InPlace
from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import KINDS, Session
from remat_cli.rewrite.copies import COPY
from remat_cli.rewrite.predict import IN_ARENA_BYTES
from remat_cli.runtime.session import installed_version
from solvers.placement.placed import Placement

STEPS = 3  # runs of a model whose state goes on from run to run


@dataclass(frozen=True, slots=True)
class MeasuredPeaks:
    """Peaks in bytes, inputs and weights included. `second`: that of the second run, where memory patterns are in use.

    None: the runtime gave no figures.
    """

    first: int | None
    second: int | None = None


@dataclass(frozen=True, slots=True)
class Mode:
    """One session type: the measured memory of the original and the rewritten model, and how their results differ.

    `varies`: by how much the original's own results were seen to differ from run to run; with sums in pieces, from
    inputs to others that differ in their last digits.
    """

    before: MeasuredPeaks
    after: MeasuredPeaks
    differs: tuple[Difference, ...] = ()
    failed: str | None = None  # the reason why one of them did not run
    cut: bool = False  # that reason is that time was up
    varies: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Process:
    """The memory of a process during a run, by the kernel's count, or of a device by the driver's.

    `stray`: allocations of the rewritten model that were not as planned. None: not counted. `loaded`: what the sessions
    themselves hold, before and after rewriting; `loading`: the most while they were made, weights included.
    """

    before: int | None
    after: int | None
    stray: int | None = None
    differs: tuple[Difference, ...] = ()
    failed: str | None = None
    cut: bool = False
    varies: tuple[Difference, ...] = ()
    loaded: tuple[int | None, int | None] = (None, None)
    loading: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class Again:
    """Recomputations: the number of ops; the ns of their further computes in the rewritten model, of their first
    computes in the original, and the predicted ns."""

    ops: int
    took: int
    first: int
    foretold: int


@dataclass(frozen=True, slots=True)
class Timed:
    """ns of an undisturbed run of either model, measured in alternation.

    `waited`: the share of the time that threads waited for a processor, where no run was undisturbed. `probe`: ns of
    the op that is timed with every profile. `again`: None where the runtime's trace does not tell.
    """

    before: int
    after: int
    waited: float = 0.0
    probe: int = 0
    again: Again | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """How thorough a verification is. `seconds`: the time for timing both models; 0: they are not timed. `costs`:
    predicted ns of each op."""

    near: Tolerance = EXACT
    seconds: float = 0.0
    costs: Mapping[str, int] = field(default_factory=dict)
    right: Mapping[str, Any] | None = None  # outputs in float64, where these judge what is near enough


@dataclass(frozen=True, slots=True)
class Verification:
    """Modes by the name of their session; the other fields are of the session that the plan is for.

    `exactness`: how far outputs are from float64, where that was asked for and can be told.
    """

    strict: Mode
    default: Mode
    process: Process | None = None
    timed: Timed | None = None
    exactness: tuple[Exactness, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def mode(self, name: str) -> Mode:
        found: Mode = getattr(self, name)
        return found


def verify(
    graph: Graph,
    rewritten: Path,
    placement: Placement | None,
    session: Session,
    asked: Asked,
    bench: Bench,
) -> Verification:
    """Run the model of `graph` and its rewriting side by side. The bench says which run is going on."""
    bench.expect(6 + (asked.seconds > 0) + 2 * (asked.right is not None))
    besides = outside(graph) if bench.provider == "cpu" else 0
    bound = InPlace(graph.in_place, bool(graph.in_place))
    pair = _Pair(graph, rewritten, asked.near)
    own, other = sorted(KINDS.values(), key=lambda kind: kind != session)
    modes = {own.name: _compare(pair, bench, own, besides, own=True)}  # what is promised comes first: time may be short
    process = _process(pair, placement, session, bench)
    modes[other.name] = _compare(pair, bench, other, besides, own=False)
    exactness: tuple[Exactness, ...] = ()
    if asked.right is not None and process.failed is None:
        exactness = _judged(graph, rewritten, session, asked.right, bench)
        good = frozenset(one.output for one in exactness if one.as_good)
        noise = noise_of(process.differs, process.varies)
        exactness = tuple(one for one in exactness if one.as_good or one.output not in noise)
        modes = {name: replace(mode, differs=without(mode.differs, good)) for name, mode in modes.items()}
        process = replace(process, differs=without(process.differs, good))
    timed = None
    if asked.seconds > 0:
        raced = bench.race((rewritten, graph.path), session, placement, asked.seconds, True, bound)
        timed = _timed(raced, asked.costs)
    return Verification(
        **modes,
        process=process,
        timed=timed,
        exactness=exactness,
        versions={"onnx": onnx.__version__, **({"onnxruntime": found} if (found := installed_version()) else {})},
    )


def _judged(
    graph: Graph, rewritten: Path, session: Session, right: Mapping[str, Any], bench: Bench
) -> tuple[Exactness, ...]:
    """The error of the first run of either model; later runs start from its state."""
    bound = InPlace(graph.in_place, bool(graph.in_place))
    old = bench.run(graph.path, session, outputs="before.npz")
    new = bench.run(rewritten, session, outputs="after.npz", in_place=bound)
    if any(reply.refused or reply.failed for reply in (old, new)):
        return ()
    return tuple(judge(_results(graph), right, bench.results("before.npz"), bench.results("after.npz")))


def _timed(reply: Reply, costs: Mapping[str, int]) -> Timed | None:
    """Both models' times; a trace gives each kernel's share of them."""
    if reply.times is None:
        return None
    after, before = reply.times
    again = None
    if reply.inside:
        new, old = (_stretched(inside, took) for inside, took in zip(reply.inside, reply.times, strict=True))
        named = {name: name.partition(COPY)[0] for name in new if name not in old}
        clones = {name: op for name, op in named.items() if op in old and costs.get(op)}
        if clones:
            took = sum(new[name] for name in clones)
            first, foretold = sum(old[op] for op in clones.values()), sum(costs[op] for op in clones.values())
            again = Again(len(clones), round(took), round(first), foretold)
    return Timed(before, after, reply.waited, reply.probe, again)


def _stretched(inside: Mapping[str, int], ns: int) -> dict[str, float]:
    """Each kernel's share of a run's time, scaled to a run without a trace."""
    total = max(1, sum(inside.values()))
    return {name: took * ns / total for name, took in inside.items()}


@dataclass(frozen=True, slots=True)
class _Pair:
    """A graph, its rewriting, and how close their results must be."""

    graph: Graph
    rewritten: Path
    near: Tolerance


def _process(pair: _Pair, placement: Placement | None, session: Session, bench: Bench) -> Process:
    """Measure the original as the runtime runs it in such a session, and the rewriting with the plan's allocator."""
    graph, rewritten, near = pair.graph, pair.rewritten, pair.near
    carried, bound = InPlace(graph.in_place), InPlace(graph.in_place, bool(graph.in_place))
    original = partial(bench.weigh, graph.path, session, in_place=carried)
    old = original(outputs="before.npz")
    new = bench.weigh(rewritten, session, placement=placement, outputs="after.npz", in_place=bound)
    # a device holds no inputs or weights before the session is made
    fed = graph.resident if bench.provider == "cpu" else 0
    before, after = (None if reply.grew is None else fed + reply.grew for reply in (old, new))
    loaded = _itself(graph.path, old), _itself(rewritten, new)
    loading = old.loading, new.loading
    for name, reply in (("the original", old), ("the rewritten model", new)):
        if why := _failure(name, reply):
            return Process(before, after, failed=why, cut=reply is TIME_UP or old.endless)
    differs, varies = compare(_results(graph), near, bench.results, partial(original, nudge=near == IN_PIECES))
    return Process(before, after, new.stray, differs, varies=varies, loaded=loaded, loading=loading)


def _itself(model: Path, reply: Reply) -> int | None:
    """What the session holds without the weights that its file holds, which count among the model's."""
    if reply.loaded is None:
        return None
    stored = onnx.load(model, load_external_data=False).graph.initializer
    return max(0, reply.loaded - sum(len(tensor.raw_data) for tensor in stored))


def _compare(pair: _Pair, bench: Bench, kind: Session, outside: int, own: bool) -> Mode:
    """`own`: whether this is the session that the plan is for, in which outputs are written over inputs."""
    graph, rewritten, near = pair.graph, pair.rewritten, pair.near
    runs = max(kind.runs, STEPS) if graph.in_place else kind.runs
    carried, bound = InPlace(graph.in_place), InPlace(graph.in_place, own and bool(graph.in_place))
    original = partial(bench.run, graph.path, kind, runs, in_place=carried)
    old = original(outputs="before.npz")
    if old.refused:
        raise BadInput(f"onnxruntime cannot run {graph.path}: {name_culprit(graph, old.refused)}")
    new = bench.run(rewritten, kind, runs, outputs="after.npz", in_place=bound)
    before, after = (_measured(reply, outside, kind.runs) for reply in (old, new))
    for name, reply in (("the original", old), ("the rewritten model", new)):
        if why := _failure(name, reply):
            return Mode(before, after, failed=why, cut=reply is TIME_UP or old.endless)
    turns = ("", " of the second run", " of the third run")[:runs]
    names = [f"{name}{turn}" for turn in turns for name in _results(graph)]
    again = partial(original, nudge=near == IN_PIECES)
    differs, varies = compare(names, near, partial(bench.results, runs=runs), again)
    return Mode(before, after, differs, varies=varies)


def _failure(name: str, reply: Reply) -> str | None:
    """Why a model gave no results, if it gave none."""
    if reply is TIME_UP:
        return f"time was up before {name} had run"
    said = reply.refused or reply.failed
    return f"{name} failed: {last_words(said)}" if said else None


def _results(graph: Graph) -> list[str]:
    """The outputs in the runtime's order: a value listed twice occurs twice."""
    return [output.name for output in graph.model.graph.output]


def in_all(graph: Graph, reply: Reply) -> MeasuredPeaks:
    """The peaks of a run on a CPU, with the bytes outside of its arena; None for a run that failed."""
    return MeasuredPeaks(None) if reply.refused or reply.failed else _measured(reply, outside(graph))


def _measured(reply: Reply, outside: int, runs: int = 2) -> MeasuredPeaks:
    """The peaks of the first so many runs; later ones also hold results of the runs before."""
    peaks = [outside + peak if peak else None for peak in reply.arena]
    return MeasuredPeaks(*peaks[:runs]) if peaks else MeasuredPeaks(None)


def outside(graph: Graph) -> int:
    """Bytes that the budget counts and a CPU arena does not: inputs, and all but the smallest weights."""
    small = sum(graph.values[name].bytes for name in graph.weights if graph.values[name].bytes <= IN_ARENA_BYTES)
    return graph.resident - small


def last_words(text: str) -> str:
    """The end of onnxruntime's message, where the reason is."""
    words = " ".join(text.split())
    found = re.search(r"Available memory of \d+ is smaller than requested bytes of \d+", words)
    return found.group() if found else words[-300:]


def name_culprit(graph: Graph, text: str) -> str:
    """The op that onnxruntime has no kernel for, if its message is about one."""
    named = next(_unrunnable(graph, text), None)
    if named is None:
        return last_words(text)
    return f"it has no kernel for {named}, so the plan cannot be verified here; the rewritten model itself is complete"


def _unrunnable(graph: Graph, text: str) -> Iterator[str]:
    patterns = (r"implementation for (\w+)\(", r"(\w+)\(-?\d+\) is not a registered", r"No [Oo]p registered for (\w+)")
    for pattern in patterns:
        for kind in re.findall(pattern, text):
            op = next((op for op in graph.ops if op.op_type == kind), None)
            yield f"op {op.name} ({op.domain or 'ai.onnx'} {kind})" if op else kind
