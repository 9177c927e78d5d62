"""What no schedule can get below.

A peak is bounded by what each node needs for itself, and then by a search backwards over what must be in memory
together. Whatever set of values is to be in memory at once, one of them was produced last: while it was, the others
were held, with all that its node reads and writes; before that, the others and what the node reads had to be in memory
at once in their turn. So a set's least peak is the cheapest of these chains, in the sense of their largest member, down
to the empty set; cut short anywhere, the least on the search's frontier is still a bound.

The end asks for the outputs' last copies, which have memory of their own.

Invariant: every bound holds for every order, repeats and any order of first computes included; what values share, take
over and leave out is `Blocks`' word.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

from solvers.clock import Clock
from solvers.orders.blocks import Blocks
from solvers.problem import Limits, Node, Problem, Result

_STATES = 20_000  # of one backward search


@dataclass(frozen=True, slots=True)
class PeakBound:
    """`values` are what node `node` reads and writes; at the end, the outputs."""

    peak: int
    node: int | None
    values: tuple[int, ...]

    def told(self, result: Result) -> Result:
        """The result, with what is proved of peaks."""
        return replace(result, peak_bound=self.peak, peak_node=self.node, peak_values=self.values)


@dataclass(frozen=True, slots=True)
class Held:
    """Copies that are in memory together; `last`: outputs' last ones."""

    values: frozenset[int]
    last: frozenset[int] = frozenset()

    def before(self, node: Node) -> Held:
        """What is held before a node runs, if this is held afterwards."""
        last = self.last.difference(node.writes)
        return Held(self.values.difference(node.writes).union(node.reads).difference(last), last)


def cost_bound(problem: Problem) -> int:
    """Every node runs at least once."""
    return sum(node.cost for node in problem.nodes)


def peak_bound(problem: Problem) -> PeakBound:
    """The op that needs most for itself, or the outputs together."""
    blocks = Blocks(problem)
    return max((_bound(blocks, moment, 0) for moment in _moments(problem)), key=lambda bound: bound.peak)


def prove(problem: Problem, known: int, limits: Limits) -> PeakBound:
    """The best bound found; `known`: a peak that can be reached, above which no bound need be sought."""
    best, blocks, writer = peak_bound(problem), Blocks(problem), problem.writers()
    for moment in sorted(_moments(problem), key=lambda moment: -_alone(blocks, moment)):
        if best.peak >= known or limits.clock.over():
            break
        found = _bound(blocks, moment, _backwards(blocks, writer, moment[2], known, limits.clock))
        best = max(best, found, key=lambda bound: bound.peak)
    return best


_Moment = tuple[int | None, Node, Held]


def _moments(problem: Problem) -> list[_Moment]:
    """Every node with what it reads, and the end with the outputs."""
    end = (None, problem.end(), Held(frozenset(), frozenset(problem.outputs)))
    return [end, *((index, node, Held(frozenset(node.reads))) for index, node in enumerate(problem.nodes))]


def _bound(blocks: Blocks, moment: _Moment, peak: int) -> PeakBound:
    index, node, _ = moment
    return PeakBound(max(peak, _alone(blocks, moment)), index, tuple(sorted({*node.reads, *blocks.taken(node)})))


def _alone(blocks: Blocks, moment: _Moment) -> int:
    """What a node needs for itself at the very least."""
    _, node, held = moment
    return needs(blocks, node, held, Held(frozenset()))


def needs(blocks: Blocks, node: Node, before: Held, after: Held) -> int:
    """The least memory while a node runs, between what is held before and what is held of that and more afterwards."""
    problem = blocks.problem
    taken = sum(problem.sizes[write] for write in blocks.taken(node, after.values, after.last))
    return problem.resident + node.workspace + blocks.held(before.values, before.last) + taken


def _backwards(blocks: Blocks, writer: Sequence[int], wanted: Held, known: int, clock: Clock) -> int:
    """A bound on the peak of any order that brings these values into memory together, or `known` if that is less."""
    problem = blocks.problem
    heap: list[tuple[int, int, int, Held]] = [(0, 0, 0, wanted)]
    least = {wanted: 0}
    pushed = 0
    while heap:
        peak, _, _, held = heapq.heappop(heap)
        if not (held.values or held.last) or peak >= known or pushed > _STATES or clock.over():
            return min(peak, known)
        if peak > least[held]:
            continue
        for index in {writer[value] for value in (*held.values, *held.last)}:
            node = problem.nodes[index]
            before = held.before(node)
            reached = max(peak, needs(blocks, node, before, held))
            if reached < least.get(before, known):
                least[before] = reached
                pushed += 1
                heapq.heappush(heap, (reached, -index, pushed, before))
    return known
