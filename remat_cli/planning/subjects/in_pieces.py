"""The same model with its ops in pieces, as something to be planned; and how far its least peak can be brought down.

Invariant: a plan of pieces records them, so that the same graph is made of the file again; its baseline is the model as
it was given, and what its ops cost adds up to about what the whole ones do. An op that was not cut costs what it costs
in the whole graph; a piece what it takes here, or else its share of its op on paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from profiles.costs import Costs, OpCost
from profiles.roofline import FLOPS
from profiles.survey import Ops, estimated
from remat_cli.formats.planfile import CutOps, PlanFile
from remat_cli.model.signatures import ops_of
from remat_cli.notes.kinds import PlanNote
from remat_cli.pieces.finding import Found, Rules, cut_down
from remat_cli.pieces.graph_in_pieces import InPieces
from remat_cli.pieces.recording import record_of, replayed
from remat_cli.planning.subjects.subject import Subject
from solvers.clock import FOREVER_SECONDS, Clock
from solvers.notes import Note
from solvers.orders.bounds import peak_bound, widest_node

Timed = Callable[[Ops], Mapping[str, OpCost]]  # what ops take by themselves, by name
Measured = Mapping[str, tuple[int, int]]  # nanoseconds in the graph, and workspace, of each op by name
SHARES = (2, 4, 8, 16, 32)  # of what sets the least peak, in so many pieces
GAIN = 0.02  # of the least peak: finer pieces that bring less are not worth their ops
TIMES = 3  # as many ops as the whole graph has, or
OPS = 2000  # so many: beyond both nothing more is cut, since a search does less well with more


class PieceCosts:
    """The costs of graphs that are made of one model by cutting its ops. `timed`: measures ops, where this may be."""

    def __init__(self, whole: Subject, timed: Timed | None = None) -> None:
        assert whole.graph is not None
        self.timed = timed
        given = whole.costed
        self.device = FLOPS if given is not None and given.unit == FLOPS else "cpu"
        self.paper = estimated(ops_of(whole.graph), self.device)
        self.whole = given or Costs(whole.graph.path.name, whole.graph.sha256, whole.graph.dims, {}, self.paper)
        foreseen = sum(self.paper[name].ns for name in self.paper if name in self.whole.ops)
        self.speed = self.whole.total / foreseen if foreseen else 1.0  # of this machine, against paper

        measured = [cost for cost in self.whole.ops.values() if cost.alone and cost.how == "measured"]
        alone = sum(cost.alone or 0 for cost in measured)
        self.usual = sum(cost.ns for cost in measured) / alone if alone else 1.0  # slower in the graph than alone

    def measured(self, made: InPieces) -> Measured:
        """Of the ops that are new, those that were measured: as much slower in the graph as their op is there."""
        if self.timed is None:
            return {}
        found = self.timed(ops_of(made.graph, {op.name for op in made.graph.ops} - self.whole.ops.keys()))
        return {
            name: (round(cost.ns * self._slower(made.origin.get(name, name))), cost.workspace)
            for name, cost in found.items()
            if cost.how == "measured"
        }

    def _slower(self, origin: str) -> float:
        cost = self.whole.ops.get(origin)
        return cost.ns / cost.alone if cost is not None and cost.alone and cost.how == "measured" else self.usual

    def of(self, made: InPieces, measured: Measured | None = None) -> Costs:
        """The costs of all ops; of the `measured` ones those."""
        known = {name: OpCost(ns, held) for name, (ns, held) in (measured or {}).items()} | dict(self.whole.ops)
        new = {op.name for op in made.graph.ops if op.name not in known}
        paper = estimated(ops_of(made.graph, new), self.device)
        ops = {
            op.name: self._part(made, op.name, paper[op.name]) if op.name in new else known[op.name]
            for op in made.graph.ops
        }
        return replace(self.whole, ops=ops, kernels={})

    def _part(self, made: InPieces, name: str, paper: OpCost) -> OpCost:
        """Of an op that was measured, what falls to a piece; of what it works in no more than paper leaves out.

        What is a piece of nothing costs what paper says, but as much more or less as this machine is slower or faster.
        """
        origin = made.origin.get(name, name)
        if origin not in self.whole.ops:
            return replace(paper, ns=round(paper.ns * self.speed))
        whole, before = self.whole.ops[origin], self.paper[origin]
        share = paper.ns / before.ns if before.ns else 1.0
        held = paper.workspace / before.workspace if before.workspace else 1.0
        return OpCost(round(whole.ns * share), round(whole.workspace * min(1.0, held)), "estimated")


class Piecewise:
    """A model, and the subjects that cutting its ops makes of it. `timed`: measures ops, where this may be. `clock`:
    at its end no more is cut."""

    def __init__(self, whole: Subject, timed: Timed | None = None, clock: Clock | None = None) -> None:
        self.timed, self.clock = timed, clock or Clock(FOREVER_SECONDS)
        assert whole.graph is not None
        assert whole.recast is not None
        self.whole, self.graph, self.recast = whole, whole.graph, whole.recast

    @cached_property
    def costs(self) -> PieceCosts:
        return PieceCosts(self.whole, self.timed)

    @cached_property
    def least(self) -> int:
        """What every schedule of the whole graph needs."""
        return peak_bound(self.whole.problem).peak + self.whole.named.aside

    def subject(self, found: Found) -> Subject:
        record = record_of(found.regions, found.made.graph, found.exact)
        return self.of(found.made, replace(record, costs=dict(self.costs.measured(found.made))))

    def of(self, made: InPieces, record: CutOps) -> Subject:
        """The subject of a graph in pieces, as far as anything was cut."""
        whole = self.whole
        found = self.recast(made.graph, self.costs.of(made, record.costs) if whole.costed else None)
        figures = len(set(made.origin.values())), len(made.origin), self.least
        return replace(
            found,
            whole=whole,
            pieces=record,
            content=whole.content,
            given_costs=whole.given_costs,
            notes=(*found.notes, Note(PlanNote.IN_PIECES, figures)),
        )

    def rungs(self, start: Subject, find: Callable[[int], Found]) -> Iterator[Subject]:
        """The model with its widest op in pieces, and then what is widest, in ever finer ones; while that gains.

        What the outputs need at the end no pieces change; where that is more, the op may still be what sets the peak.
        `start`: what is in pieces already; `find`: cuts what the widest op needs down to so many bytes.
        """
        least = widest_node(start.problem)
        widest = max((start.problem.sizes[value] for value in least.values), default=0)
        for share in SHARES:
            if self.clock.interrupts():
                return
            found = find(max(1, widest // share))
            if not found.regions:
                continue
            subject = self.subject(found)
            bound = widest_node(subject.problem)
            if bound.peak < (1 - GAIN) * least.peak:
                yield subject
                least = bound

    def lowered(self, start: Found, rules: Rules, wide: int) -> Found:
        """The graph with the widest op in pieces of about `wide` bytes, and then what is widest, until that cannot be
        cut or is no wider."""
        return cut_down(start, lambda made: self._setting(made, wide), wide, rules)

    def _setting(self, made: InPieces, wide: int) -> list[str]:
        """The values at the op that needs most for itself that are wider, the widest first."""
        if self.clock.interrupts() or len(made.graph.ops) > max(TIMES * len(self.whole.nodes), OPS):
            return []
        subject = self.recast(made.graph, self.costs.of(made)) if made.origin else self.whole
        bound = widest_node(subject.problem)
        sizes = {subject.values[value]: subject.problem.sizes[value] for value in bound.values}
        return sorted((name for name, size in sizes.items() if size > wide), key=lambda name: -sizes[name])


def scheduled_by(plan: PlanFile, subject: Subject) -> Subject:
    """The graph that the plan schedules, in the plan's own pieces: of those that the subject's target plans. Raises
    BadInput where such pieces are not made any more."""
    subject = subject if plan.graph == subject.graph_planned else subject.own
    if plan.pieces == subject.pieces:
        return subject
    whole = subject.whole or subject
    if plan.pieces is None:
        return whole
    assert whole.graph is not None
    return Piecewise(whole).of(replayed(whole.graph, plan.pieces), plan.pieces)
