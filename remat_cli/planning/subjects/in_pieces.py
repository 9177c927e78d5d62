"""The same model with its ops in pieces, as something to be planned; and how far its least peak can be brought down.

Invariant: a plan of pieces records them, so that the same graph is made of the file again; its baseline is the model as
it was given, and what its ops cost adds up to about what the whole ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from profiles.costs import Costs, OpCost
from profiles.roofline import FLOPS
from profiles.survey import estimated
from remat_cli.model.graph import Graph
from remat_cli.model.signatures import ops_of
from remat_cli.notes.kinds import PlanNote
from remat_cli.pieces.finding import Found, cut_down
from remat_cli.pieces.graph_in_pieces import InPieces
from remat_cli.pieces.recording import record_of, replayed
from remat_cli.pieces.table import ANY, Allowed
from remat_cli.planning.subjects.subject import Subject
from solvers.notes import Note
from solvers.orders.bounds import peak_bound

SHARES = (2, 4, 8, 16, 32)  # of what sets the least peak, in so many pieces
GAIN = 0.02  # of the least peak: finer pieces that bring less are not worth their ops
TIMES = 3  # as many ops as the whole graph has, or
OPS = 2000  # so many: beyond both nothing more is cut, since a search does less well with more


def subject_in_pieces(whole: Subject, made: InPieces, record: Mapping[str, Any]) -> Subject:
    """The subject of a graph in pieces, as far as anything was cut."""
    assert whole.graph is not None
    assert whole.recast is not None
    found = whole.recast(made.graph, costs_in_pieces(whole.costed, whole.graph, made) if whole.costed else None)
    note = Note(PlanNote.IN_PIECES, _figures(whole, made))
    return replace(
        found,
        whole=whole,
        pieces=dict(record),
        content=whole.content,
        given_costs=whole.given_costs,
        notes=(*found.notes, note),
    )


def _figures(whole: Subject, made: InPieces) -> tuple[int, int, int]:
    """How many ops are in pieces, in how many, and what every schedule of the whole graph needs."""
    assert whole.graph is not None
    least = peak_bound(whole.problem).peak + whole.named.aside
    return len(set(made.origin.values())), len(made.origin), least


def replayed_in_pieces(whole: Subject, record: Mapping[str, Any]) -> Subject:
    """The subject that a plan was made of."""
    assert whole.graph is not None
    return subject_in_pieces(whole, replayed(whole.graph, record), record)


def found_in_pieces(whole: Subject, found: Found) -> Subject:
    return subject_in_pieces(whole, found.made, record_of(found.regions, found.made.graph, found.exact))


def costs_in_pieces(costs: Costs, graph: Graph, made: InPieces) -> Costs:
    """What pieces cost: of what their op does, the share that they have of it on paper; the rest as on paper, but as
    much faster or slower as this machine is."""
    device = FLOPS if costs.unit == FLOPS else "cpu"
    before, after = estimated(ops_of(graph), device), estimated(ops_of(made.graph), device)
    paper = sum(before[name].ns for name in before if name in costs.ops)
    speed = costs.total / paper if paper else 1.0
    ops = {}
    for op in made.graph.ops:
        origin = made.origin.get(op.name, op.name)
        if origin not in costs.ops:
            own = after[op.name]
            ops[op.name] = replace(own, ns=round(own.ns * speed))
        elif op.name == origin:
            ops[op.name] = costs.ops[op.name]
        else:
            ops[op.name] = _part(costs.ops[origin], before[origin], after[op.name])
    return replace(costs, ops=ops, kernels={})


def _part(whole: OpCost, before: OpCost, after: OpCost) -> OpCost:
    """Of an op that was measured, what falls to a piece; of what it works in no more than paper leaves out."""
    share = after.ns / before.ns if before.ns else 1.0
    held = after.workspace / before.workspace if before.workspace else 1.0
    return OpCost(round(whole.ns * share), round(whole.workspace * min(1.0, held)), "estimated")


def rungs(whole: Subject, start: Subject, find: Callable[[int], Found]) -> Iterator[Subject]:
    """The model with what sets its least peak in pieces, and then what sets it, in ever finer ones; while that gains.

    `start`: what is in pieces already; `find`: cuts what sets the least peak down to so many bytes.
    """
    least = peak_bound(start.problem)
    widest = max((start.problem.sizes[value] for value in least.values), default=0)
    for share in SHARES:
        found = find(max(1, widest // share))
        if not found.regions:
            continue
        subject = found_in_pieces(whole, found)
        bound = peak_bound(subject.problem)
        if bound.peak < (1 - GAIN) * least.peak:
            yield subject
            least = bound


def lowered(whole: Subject, start: Found, wide: int, allowed: Allowed = ANY) -> Found:
    """The graph with what sets its least peak in pieces of about `wide` bytes, and then what sets it, until that cannot
    be cut or is no wider."""
    return cut_down(start, lambda made: _setting(whole, made, wide), wide, allowed)


def _setting(whole: Subject, made: InPieces, wide: int) -> list[str]:
    """The values at the op that needs most for itself that are wider, the widest first."""
    assert whole.recast is not None
    if len(made.graph.ops) > max(TIMES * len(whole.nodes), OPS):
        return []
    subject = whole.recast(made.graph, None)
    bound = peak_bound(subject.problem)
    if bound.node is None:
        return []
    sizes = {subject.values[value]: subject.problem.sizes[value] for value in bound.values}
    return sorted((name for name, size in sizes.items() if size > wide), key=lambda name: -sizes[name])
