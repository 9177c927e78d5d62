"""One budget for all graphs of a training step: a graph break makes several, each of which waits while later ones run.

In the first step each graph is planned as if it were alone, and what waits while what runs is written down. Where that
step held more than the budget, each graph gets a room of its own for a second compilation: of what it would hold
without recomputation, each may hold the same share.

Invariant: the rooms of graphs that wait for one another add up to no more than the budget, all inputs among it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import fx

from remat_cli.torch.lowering import Lowered
from solvers.problem import Problem
from solvers.schedule import baseline


@dataclass(frozen=True, slots=True)
class GraphRoom:
    """What one graph may hold, its inputs among it.

    `saved`: of what it makes, the bytes that may wait for the backward pass; None: as many as fit. `gradients`: the
    bytes that later graphs leave behind before the backward pass of this one begins.
    """

    limit: int
    saved: int | None = None
    gradients: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """What a graph needs without recomputation: its inputs, and besides them at its peak and while later graphs run.

    `ops`: how many nodes its problem has, by which a graph is known again.
    """

    ops: int
    inputs: int
    peak: int
    saved: int
    gradients: int


@dataclass(frozen=True, slots=True)
class ForwardRun:
    """A run of a graph's forward pass in a step. `waiting`: the graphs whose backward passes were still to come.

    `shared`: bytes of its inputs that other graphs made.
    """

    graph: int
    waiting: tuple[int, ...]
    shared: int


def need_of(lowered: Lowered) -> Need:
    """What a graph needs when each op runs once, in the graph's order."""
    problem, place = lowered.problem, lowered.boundary
    outcome = baseline(problem)[1]
    tangents = _bytes(problem, problem.nodes[place].writes)
    returned = [node for node in lowered.joint.backward_outputs if isinstance(node, fx.Node)]
    made = {buffer for node in returned for buffer in lowered.joint.buffers[node] if buffer.maker is not None}
    return Need(
        ops=len(problem.nodes),
        inputs=problem.resident,
        peak=outcome.peak - problem.resident,
        saved=max(0, outcome.memory[place] - problem.resident - tangents),
        gradients=sum(buffer.bytes for buffer in made),
    )


def whole_peak(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int) -> int:
    """What the step holds at most without recomputation. `given`: bytes of what no graph makes."""
    return given + max(_beside(needs, calls, place) + needs[call.graph].peak for place, call in enumerate(calls))


def divide(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, budget: int) -> dict[int, GraphRoom]:
    """A room for each graph that ran, so that the step keeps to the budget."""
    share = (budget - given) / max(1, whole_peak(needs, calls, given) - given)
    rooms: dict[int, GraphRoom] = {}
    for place, call in enumerate(calls):
        waiting = sum(int(share * needs[graph].saved) for graph in call.waiting)
        limit = budget - given - waiting + needs[call.graph].inputs
        gradients = _gradients(needs, calls, place)
        known = rooms.get(call.graph)
        rooms[call.graph] = GraphRoom(
            limit=min(limit, known.limit) if known else limit,
            saved=int(share * needs[call.graph].saved),
            gradients=max(gradients, known.gradients) if known else gradients,
        )
    return rooms


def furnish(lowered: Lowered, room: GraphRoom) -> Problem:
    """The graph's problem in which the boundary needs the bytes that the room leaves to other graphs."""
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


def _beside(needs: Sequence[Need], calls: Sequence[ForwardRun], place: int) -> int:
    """What other graphs hold while this call's passes run, without recomputation and without what no graph makes."""
    call = calls[place]
    return sum(needs[graph].saved for graph in call.waiting) + _gradients(needs, calls, place)


def _gradients(needs: Sequence[Need], calls: Sequence[ForwardRun], place: int) -> int:
    """What the backward passes of the graphs that run while this call waits leave behind, each graph counted once."""
    own = calls[place].graph
    later = {c.graph: c.shared for c in calls[place + 1 :] if own in c.waiting and c.graph != own}
    return sum(max(0, needs[graph].gradients - shared) for graph, shared in later.items())


def _bytes(problem: Problem, values: Sequence[int]) -> int:
    return sum(problem.sizes[value] for value in values)
