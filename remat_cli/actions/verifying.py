"""What `verify` does, on values: feed the model of a plan and its rewriting, say whether the plan's promises hold.

Invariant: no faults means same bytes out, no more live at once than the budget, and no more held by the process than is
said and allowed for the runtime, in the session that the plan is for. The other session is reported, and promises
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from remat_cli.actions import emitting
from remat_cli.checking import Asked, Mode, Process, Verification, verify
from remat_cli.checking import feeds as feeding
from remat_cli.checking.compare import EXACT, IN_PIECES, Difference, Tolerance
from remat_cli.checking.exactness import FACTOR_MOST, run_in_float64
from remat_cli.checking.feeds import find_unseeded, write_seeded
from remat_cli.checking.processes import FOREVER, BegunRun, Bench
from remat_cli.checking.trying import in_file
from remat_cli.errors import BadInput, Mismatch, Unfinished, Usage
from remat_cli.events import EventQueue
from remat_cli.formats.files import sha256
from remat_cli.formats.planfile import AS_RUN
from remat_cli.model.graph import Graph
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import Session
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.planning.search.untouched import is_untouched
from remat_cli.planning.time_plan import ENDING_SHARE
from remat_cli.plans.notebook import bars, shown
from remat_cli.plans.planned import Planned
from remat_cli.units import show_bytes
from solvers.clock import Clock

TIMEOUT = 600.0  # seconds
# what the process may hold beyond what is said, for the runtime: a share of that, or so many bytes where that is more
ALLOWED_OF_ITSELF = 0.15  # and of what is said of the session itself
ALLOWED_BYTES = 10_000_000
NAMED_OUTPUTS = 3  # of the outputs that differ
LOWER = "this plan is of the kernels of default options; for programs that set {}, solve with --optimize disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How to try a plan. `feeds`: inputs, or a file of them; by default random and valid. `timeout`: of each run.

    `near`: how far results may be from the original's. `level`: of the
    optimizations of the default session, as a program sets it. `seconds`: for timing both models, their runs taking
    turns; none: they are not timed. `clock`: for all runs; what had no time to run is not as promised.
    """

    feeds: Path | Mapping[str, Any] | None = None
    seed: int = 0
    provider: str = "cpu"
    timeout: float = TIMEOUT
    near: Tolerance = EXACT
    level: str = "all"
    seconds: float = 0.0
    events: EventQueue[BegunRun] | None = None  # which run begins, where somebody reads it
    clock: Clock = FOREVER


@dataclass(frozen=True, slots=True, repr=False)
class Verified:
    """What was measured beside what was promised; `faults`: what is not as it was promised, in words; `unknown`: what
    time was up for.

    `draws`: random ops without a seed, which were given one, as no two runs of either model would agree otherwise.
    """

    report: Verification
    promise: Promise
    session: Session
    budget: int
    threads: int
    faults: tuple[str, ...]
    draws: int = 0
    near: Tolerance = EXACT
    unknown: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.faults and not self.unknown

    def _said(self) -> str:
        if self.faults:
            return f"not as promised: {'; '.join(self.faults)}"
        return f"not known: {'; '.join(self.unknown)}" if self.unknown else "as promised"

    def __repr__(self) -> str:
        held = ", ".join(f"{name} {before} to {after}" for name, before, after, _ in self._figures())
        return f"<verified: {self._said()}: {held}>"

    def _repr_html_(self) -> str:
        """For a notebook: what was measured as a table, and what is held as bars."""
        caption = f"verified: {self._said()}"
        held = self._held()[-1]
        picture = bars([(f"{name}, {held[0]}", size) for name, size in zip(("original", "planned"), held[1:3]) if size])
        return shown(caption, self._figures(), ("measured", "before", "after", "predicted"), picture)

    def _held(self) -> list[tuple[str, int | None, int | None, int | None]]:
        """Bytes before, after and as predicted: what is live in the plan's session, and what the process holds."""
        mode, weight = self.report.mode(self.session.name), self.report.process
        rows = [(f"live, {self.session.name} session", mode.before.first, mode.after.first, self.promise.live)]
        if weight is not None and weight.after is not None:
            rows.append(("the process", weight.before, weight.after, self.promise.arena))
        return rows

    def _figures(self) -> list[tuple[str, ...]]:
        return [(name, *("-" if size is None else show_bytes(size) for size in sizes)) for name, *sizes in self._held()]

    def refusal(self, what: str) -> Mismatch | Unfinished | None:
        """What does not hold of `what`, or else is not known, if anything."""
        if self.faults:
            return Mismatch(f"{what}: {'; '.join(self.faults)}", self)
        return Unfinished(f"{what}: {'; '.join(self.unknown)}; give more time", self) if self.unknown else None


def tried(plan: Planned, model: Path, promise: Promise, trial: Trial) -> Verified:
    """Run both models, the rewritten one at `model`, and hold them to the plan."""
    _check_provider(trial.provider)
    graph, threads = emitting.given_graph_of(plan), plan.subject.threads
    feeds = _feeds(graph, trial)
    session = plan.recorded.kind
    clock = trial.clock.before_ending(ENDING_SHARE)
    with (
        Bench(feeds, trial.provider, trial.timeout, threads, trial.events, trial.level, clock) as bench,
        in_a_file(plan, graph) as original,
    ):
        costs = {name: node.cost for name, node in zip(plan.subject.nodes, plan.subject.problem.nodes, strict=True)}
        near = _near(plan, trial)
        right = run_in_float64(graph, feeds) if near == IN_PIECES and not clock.over() else None
        asked = Asked(near, trial.seconds, costs, right)
        draws = len(find_unseeded(graph.model))
        if draws:
            original = replace(original, path=write_seeded(original.path, bench.folder / "original"))
            model = write_seeded(model, bench.folder / "rewritten")
        report = verify(original, model, plan.recorded.placement, session, asked, bench)
    faults = tuple(_faults(report, session, plan.budget, promise))
    lowered = trial.level != "all" and plan.recorded.graph == AS_RUN
    if lowered and report.mode(session.name).differs:
        faults = (*faults, LOWER.format(trial.level))
    unknown = tuple(dict.fromkeys(why for _, why, cut in _failures(report, session) if cut))
    return Verified(report, promise, session, plan.budget, threads, faults, draws, asked.near, unknown)


def _near(plan: Planned, trial: Trial) -> Tolerance:
    """How far results may be off: as was asked, or else not at all, unless sums are made in pieces."""
    summed = plan.recorded.pieces is not None and not plan.recorded.pieces.exact
    return IN_PIECES if summed and trial.near == EXACT else trial.near


def verified(plan: Planned, trial: Trial) -> Verified:
    """The same of a model that is made for the occasion."""
    with TemporaryDirectory(prefix="remat-") as folder:
        emitted = emitting.emit(plan)
        path = Path(folder) / "model.remat.onnx"
        emitting.write(emitted, path)
        return tried(plan, path, emitted.promise, trial)


@contextmanager
def in_a_file(plan: Planned, graph: Graph) -> Iterator[Graph]:
    """The graph, its model in a file that other processes can read."""
    if plan.subject.content is None:
        yield graph
        return
    with TemporaryDirectory(prefix="remat-") as folder:
        model = onnx.ModelProto.FromString(plan.subject.content)
        yield replace(graph, path=in_file(model, graph.path, Path(folder)))


def _feeds(graph: Graph, trial: Trial) -> dict[str, Any]:
    if isinstance(trial.feeds, Path):
        return feeding.read_feeds(graph, trial.feeds)
    if trial.feeds is not None:
        return feeding.hold_to_inputs(graph, trial.feeds, "the feeds")
    return feeding.draw_feeds(graph, trial.seed)


def is_made_from(rewritten: Path, plan: Path, planned: Planned) -> bool:
    """Whether the model was made from the plan as it is now."""
    return _is_original(rewritten, planned) or _said_by(rewritten).get("remat.plan.sha256") == sha256(plan)


def _is_original(model: Path, planned: Planned) -> bool:
    """Whether it is the original, of which the plan changes nothing."""
    return sha256(model) == planned.recorded.model.sha256 and is_untouched(planned.replayed()[0], planned.subject)


def _said_by(model: Path) -> dict[str, str]:
    """What the model's metadata say."""
    try:
        found = onnx.load(model, load_external_data=False)
    except (OSError, ValueError, DecodeError, onnx.checker.ValidationError) as error:
        raise BadInput(f"cannot read {model}: {error}") from error
    return said_in(found)


def promise_of(rewritten: Path, plan: Path, planned: Planned) -> Promise:
    """What the plan promises of the model, whose metadata say that it was made from it; or which is the original."""
    if _is_original(rewritten, planned):
        return planned.recorded.promises
    said = _said_by(rewritten)
    if said.get("remat.plan.sha256") != sha256(plan):
        raise BadInput(f"{rewritten} was not made from {plan} as it is now; run 'remat emit {plan}' again")
    strict, default = (_number(said.get(f"remat.peak.{name}")) for name in ("strict", "default"))
    return replace(planned.recorded.promises, strict=strict, default=default)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _check_provider(name: str) -> None:
    """Without all it needs, onnxruntime would quietly run on the CPU instead."""
    from profiles import cuda

    if name not in ("cpu", "cuda"):
        raise Usage(f"there is no provider '{name}'; there are cpu and cuda")
    if name == "cuda" and (missing := cuda.missing()):
        raise Usage(f"--provider cuda cannot be used here; what is missing: {'; '.join(missing)}. {cuda.INSTALL}")


def _failures(report: Verification, session: Session) -> Iterator[tuple[str, str, bool]]:
    """Where a model gave no results, why, and whether that is because time was up."""
    where, mode = f"{session.name} session", report.mode(session.name)
    said = set[str]()
    for name, ran in ((where, mode), (f"{where}, with its allocator", report.process)):
        if ran is not None and ran.failed and ran.failed not in said:
            said.add(ran.failed)
            yield name, ran.failed, ran.cut


def _faults(report: Verification, session: Session, budget: int, promise: Promise) -> Iterator[str]:
    """What is not as the plan promised, in the session that it was made for."""
    where, mode = f"{session.name} session", report.mode(session.name)
    yield from (f"{name}: {why}" for name, why, cut in _failures(report, session) if not cut)
    for name, ran in ((where, mode), (f"{where}, with its allocator", report.process)):
        if ran is not None and ran.differs:
            yield f"{name}: {_worst(ran.differs)}"
    for one in report.exactness:
        if not one.as_good:
            off = f"{one.after:.2g} of its norm off float64, the original {one.before:.2g}"
            yield f"output {one.output} is more than {FACTOR_MOST:g} times as far off: {off}"
    peak = mode.after.first
    if peak is not None and peak > budget:
        yield f"{where}: {peak} bytes are live at once, {peak - budget} over the budget of {budget}"
    if report.process is not None:
        yield from beyond(report.process, session, promise)
    later = mode.after.second
    if later is not None and later > _most_later(promise, budget, mode):
        yield f"{where}: {later} bytes are live in the second run, more than {_most_later(promise, budget, mode)}"


def beyond(weight: Process, session: Session, promise: Promise) -> Iterator[str]:
    """Where the process holds more than is said, beyond what is allowed."""
    parts = [("the process", weight.after, promise.arena, session.allowed_share)]
    if not session.grows:
        parts.append(("the session itself", weight.loaded[1], promise.itself, ALLOWED_OF_ITSELF))
    for what, held, said, share in parts:
        if held is None or said is None or held - said <= (allowed := max(ALLOWED_BYTES, round(share * said))):
            continue
        yield (
            f"{what} holds {show_bytes(held)}, {show_bytes(held - said)} more than the {show_bytes(said)} that is said,"
            f" where {show_bytes(allowed)} is allowed for the runtime"
        )


def _most_later(promise: Promise, budget: int, mode: Mode) -> int:
    """Of a model that was tried: the budget. Where later runs were not seen to: no more than the original's."""
    return budget if promise.later is not None else max(budget, mode.before.second or budget)


def _worst(wrong: Sequence[Difference]) -> str:
    """How many outputs differ, and the worst of them."""
    named = "; ".join(f"output {one.output} is not the same: {one.says}" for one in wrong[:NAMED_OUTPUTS])
    return named if len(wrong) <= NAMED_OUTPUTS else f"{len(wrong)} outputs differ, the worst: {named}"
