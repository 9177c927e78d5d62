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

from remat_cli.torch.lowering import Lowered
from solvers.orders.kept import kept_bound
from solvers.problem import Problem
from solvers.schedule import evaluate

HALVINGS = 30
Held = tuple[int, int]  # the bytes of a graph beside its inputs: at its peak, and while later graphs run


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
    known plan, at its peak and while later graphs run. `ran`: both of the plan that ran.
    """

    ops: int = 0
    inputs: int = 0
    peak: int = 0
    saved: int = 0
    least: int = 0
    handed: int = 0
    ran: Held = (0, 0)

    def at(self, share: float) -> Held:
        """Both with this share of the memory as written, or the least where that is more."""
        return max(self.least, int(share * self.peak)), max(self.handed, int(share * self.saved))


@dataclass(frozen=True, slots=True)
class ForwardRun:
    """A run of a graph in a step. `waiting`: the graphs whose backward passes were still to come when it began.

    `gradients`: bytes that other backward passes had left behind when its own began, beside what it was given.
    """

    graph: int
    waiting: tuple[int, ...]
    gradients: int = 0


def need_of(lowered: Lowered) -> Need:
    """The memory of a graph when each op runs in the graph's order, as often as the user wrote."""
    problem, written = lowered.problem, lowered.as_written
    early = {value for node in problem.nodes[: lowered.boundary] for value in node.writes}
    peak, saved = held_by_order(written, range(len(written.problem.nodes)))
    return Need(
        ops=len(problem.nodes),
        inputs=problem.resident,
        peak=peak,
        saved=saved,
        least=kept_bound(problem) - problem.resident,
        handed=_bytes(problem, [value for value in problem.outputs if value in early]),
    )


def held_by_order(lowered: Lowered, order: Sequence[int]) -> Held:
    """What a graph holds when its ops run in this order."""
    problem, place = lowered.problem, order.index(lowered.boundary)
    outcome = evaluate(problem, order)[1]
    tangents = _bytes(problem, problem.nodes[lowered.boundary].writes)
    return outcome.peak - problem.resident, max(0, outcome.memory[place] - problem.resident - tangents)


def whole_peak(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, share: float = 1.0) -> int:
    """The peak of the step when each graph holds this share of its memory. `given`: bytes of tensors that no graph
    makes."""
    return _peak([need.at(share) for need in needs], calls, given)


def unforeseen(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, measured: int) -> int:
    """The bytes by which a step held more than its plans and all that was given say, or less, as where not all of that
    was there at once. With other plans it is the same."""
    return measured - _peak([need.ran for need in needs], calls, given)


def _peak(held: Sequence[Held], calls: Sequence[ForwardRun], given: int) -> int:
    return given + max(
        sum(held[graph][1] for graph in call.waiting) + call.gradients + held[call.graph][0] for call in calls
    )


def divide(needs: Sequence[Need], calls: Sequence[ForwardRun], given: int, budget: int) -> dict[int, GraphRoom]:
    """A room for each graph that ran, so that the step keeps to the budget, or to the least that may be possible."""
    budget = max(budget, whole_peak(needs, calls, given, 0.0))
    share = _share(needs, calls, given, budget)
    rooms: dict[int, GraphRoom] = {}
    for call in calls:
        need, known = needs[call.graph], rooms.get(call.graph)
        waiting = sum(needs[graph].at(share)[1] for graph in call.waiting)
        limit = budget - given - waiting + need.inputs
        rooms[call.graph] = GraphRoom(
            limit=min(limit, known.limit) if known else limit,
            saved=need.at(share)[1] if len(calls) > 1 else None,
            gradients=max(call.gradients, known.gradients) if known else call.gradients,
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


def _bytes(problem: Problem, values: Sequence[int]) -> int:
    return sum(problem.sizes[value] for value in values)
