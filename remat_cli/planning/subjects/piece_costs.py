"""What ops in pieces cost: what they take here, where ops were measured here, or of what their op does, the share that
they have of it on paper.

Invariant: an op that was not cut costs what it costs in the whole graph; what is new has a cost in the same unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from profiles.costs import Costs, OpCost
from profiles.roofline import FLOPS
from profiles.survey import Ops, estimated
from remat_cli.model.signatures import ops_of
from remat_cli.pieces.graph_in_pieces import InPieces
from remat_cli.planning.subjects.subject import Subject

Timed = Callable[[Ops], Mapping[str, OpCost]]  # what ops take by themselves, by name
Measured = Mapping[str, tuple[int, int]]  # nanoseconds in the graph, and workspace, of each op by name


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
