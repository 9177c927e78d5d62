"""The same model with its ops in pieces, as something to be planned; and how far its least peak can be brought down.

Invariant: a plan of pieces records them, so that the same graph is made of the file again; its baseline is the model as
it was given, and what its ops cost adds up to about what the whole ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

from remat_cli.formats.planparts import CutOps
from remat_cli.notes.kinds import PlanNote
from remat_cli.pieces.finding import Found, Rules, cut_down
from remat_cli.pieces.graph_in_pieces import InPieces
from remat_cli.pieces.recording import record_of, replayed
from remat_cli.planning.subjects.piece_costs import PieceCosts, Timed
from remat_cli.planning.subjects.subject import Subject
from solvers.clock import FOREVER_SECONDS, Clock
from solvers.notes import Note
from solvers.orders.bounds import peak_bound, widest_node

SHARES = (2, 4, 8, 16, 32)  # of what sets the least peak, in so many pieces
GAIN = 0.02  # of the least peak: finer pieces that bring less are not worth their ops
TIMES = 3  # as many ops as the whole graph has, or
OPS = 2000  # so many: beyond both nothing more is cut, since a search does less well with more


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


def replayed_in_pieces(whole: Subject, record: CutOps) -> Subject:
    """The subject that a plan was made of."""
    assert whole.graph is not None
    return Piecewise(whole).of(replayed(whole.graph, record), record)
