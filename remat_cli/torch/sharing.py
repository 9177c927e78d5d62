"""One budget for all graphs of a training step: a graph break makes several graphs, and each waits while later ones
run.

In the first step each graph is planned as if it were alone, and the step records which graphs wait while which run.
Where that step held more than the budget, each graph gets a room of its own for a second compilation. Each may hold the
same share of its memory as written, or the least that it needs where that is more.

Invariant: the rooms of graphs that wait for one another add up to no more than the budget, all inputs included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import fx

from remat_cli.torch.lowering import Lowered
from solvers.orders.kept import kept_bound
from solvers.problem import Problem
from solvers.schedule import baseline

HALVINGS = 30


@dataclass(frozen=True, slots=True)
class GraphRoom:
    """The bytes that one graph may hold, its inputs included.

    `saved`: the bytes of its values that may wait for the backward pass; None: as many as fit. `gradients`: the bytes
    that later graphs leave behind before the backward pass of this one begins.
    """

    limit: int
    saved: int | None = None
    gradients: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """The memory of a graph as written: its inputs, and besides them at its peak and while later graphs run.

    `ops`: the number of its problem's nodes, which identifies the graph. `least`, `handed`: the least memory of any
    known plan, at its peak and while later graphs run.
    """

    ops: int = 0
    inputs: int = 0
    peak: int = 0
    saved: int = 0
    gradients: int = 0
    least: int = 0
    handed: int = 0

    def peak_at(self, share: float) -> int:
        return max(self.least, int(share * self.peak))

    def saved_at(self, share: float) -> int:
        return max(self.handed, int(share * self.saved))


@dataclass(frozen=True, slots=True)
class ForwardRun:
    """A run of a graph's forward pass in a step. `waiting`: the graphs whose backward passes were still to come.

    `shared`: bytes of its inputs that other graphs made.
    """

    graph: int
    waiting: tuple[int, ...]
    shared: int


def need_of(lowered: Lowered) -> Need:
    """The memory of a graph when each op runs in the graph's order, as often as the user wrote."""
    problem, place, written = lowered.problem, lowered.boundary, lowered.as_written
    outcome = baseline(written.problem)[1]
    tangents = _bytes(problem, problem.nodes[place].writes)
    returned = [node for node in lowered.joint.backward_outputs if isinstance(node, fx.Node)]
    made = {buffer for node in returned for buffer in lowered.joint.buffers[node] if buffer.maker is not None}
    early = {value for node in problem.nodes[:place] for value in node.writes}
    return Need(
        ops=len(problem.nodes),
        inputs=problem.resident,
        peak=outcome.peak - problem.resident,
        saved=max(0, outcome.memory[written.boundary] - problem.resident - tangents),
        gradients=sum(buffer.bytes for buffer in made),
        least=kept_bound(problem) - problem.resident,
        handed=_bytes(problem, [value for value in problem.outputs if value in early]),
    )


def whole_peak(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, share: float = 1.0) -> int:
    """The peak of the step when each graph holds this share of its memory. `given`: bytes of tensors that no graph
    makes."""
    return given + max(
        sum(needs[graph].saved_at(share) for graph in call.waiting)
        + _gradients(needs, calls, place)
        + needs[call.graph].peak_at(share)
        for place, call in enumerate(calls)
    )


def divide(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, budget: int) -> dict[int, GraphRoom]:
    """A room for each graph that ran, so that the step keeps to the budget, or to the least that may be possible."""
    budget = max(budget, whole_peak(needs, calls, given, 0.0))
    share = _share(needs, calls, given, budget)
    rooms: dict[int, GraphRoom] = {}
    for place, call in enumerate(calls):
        need, known = needs[call.graph], rooms.get(call.graph)
        waiting = sum(needs[graph].saved_at(share) for graph in call.waiting)
        limit = budget - given - waiting + need.inputs
        gradients = _gradients(needs, calls, place)
        rooms[call.graph] = GraphRoom(
            limit=min(limit, known.limit) if known else limit,
            saved=need.saved_at(share),
            gradients=max(gradients, known.gradients) if known else gradients,
        )
    return rooms


def _share(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, budget: int) -> float:
    """The largest share with which the step keeps to the budget; 0 where none does."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if whole_peak(needs, calls, given, middle) <= budget else (low, middle)
    return low


def furnish(lowered: Lowered, room: GraphRoom) -> Problem:
    """The graph's problem, with a boundary that needs the bytes which the room leaves to other graphs."""
    problem = lowered.problem
    if room.saved is None:
        return problem
    place, left = lowered.boundary, len(problem.sizes)
    boundary = problem.nodes[place]
    own = problem.resident + room.saved + _bytes(problem, boundary.writes)
    nodes = list(problem.nodes)
    nodes[place] = replace(
        boundary,
        workspace=max(0, room.limit - own - room.gradients),
        writes=(*boundary.writes, left),
    )
    return replace(
        problem,
        nodes=tuple(nodes),
        sizes=(*problem.sizes, room.gradients),
        outputs=(*problem.outputs, left),
    )


def _gradients(needs: Sequence[Need], calls: Sequence[ForwardRun], place: int) -> int:
    """The bytes that backward passes of graphs leave behind which run while this call waits; each graph counts once."""
    own = calls[place].graph
    later = {c.graph: c.shared for c in calls[place + 1 :] if own in c.waiting and c.graph != own}
    return sum(max(0, needs[graph].gradients - shared) for graph, shared in later.items())


def _bytes(problem: Problem, values: Sequence[int]) -> int:
    return sum(problem.sizes[value] for value in values)
