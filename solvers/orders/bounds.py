"""Bounds of every schedule: the cost of every node, and the memory that each node needs for itself.

The end needs the last copies of outputs, which have memory of their own. `solvers.pebbles` has stronger bounds.

Invariant: every bound holds for every order, repeats and any order of first computes included; `Blocks` defines what
values share, take over and leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd

from solvers.orders.blocks import Blocks
from solvers.problem import Impossible, Node, Problem, Result


@dataclass(frozen=True, slots=True)
class PeakBound:
    """`values` are what node `node` reads and writes; at the end, the outputs."""

    peak: int
    node: int | None
    values: tuple[int, ...]

    def told(self, result: Result) -> Result:
        """The result with the peak's bound added."""
        return replace(result, peak_bound=self.peak, peak_node=self.node, peak_values=self.values)

    def against(self, budget: int, searched: bool = False, in_order: bool = False) -> Impossible | None:
        """The proof that nothing fits the budget, if there is one.

        `searched`: whether a search through all schedules found none that fits, or `in_order` through those that first
        compute the nodes in the order given.
        """
        if self.peak > budget:
            return Impossible(budget, self.peak)
        return Impossible(budget, budget + 1, in_order) if searched else None


def bound_of(result: Result) -> PeakBound:
    """What a result says of the peak."""
    return PeakBound(result.needed or 0, result.peak_node, result.peak_values)


@dataclass(frozen=True, slots=True)
class Held:
    """Copies that are in memory together; `last`: outputs' last ones."""

    values: frozenset[int]
    last: frozenset[int] = frozenset()

    def before(self, node: Node) -> Held:
        """The copies that are held before a node runs, if these are held afterwards."""
        last = self.last.difference(node.writes)
        return Held(self.values.difference(node.writes).union(node.reads).difference(last), last)


def cost_bound(problem: Problem) -> int:
    """The sum of all costs, because every node runs at least once."""
    return sum(node.cost for node in problem.nodes)


@dataclass(frozen=True, slots=True)
class PossibleCosts:
    """What schedules can cost: `total`, which is everything once, and multiples of `unit` beyond that. Programs have
    costs divided by `scale`."""

    total: int
    unit: int
    scale: float

    @classmethod
    def of(cls, problem: Problem) -> PossibleCosts:
        costs = [node.cost for node in problem.nodes]
        return cls(cost_bound(problem), max(1, gcd(*costs)), max(costs, default=0) / 1000 or 1.0)

    def from_bound(self, bound: float) -> int:
        """The least of them that is no less than the bound, but for what arithmetic rounds."""
        return self.total + max(0, ceil((bound - self.total) / self.unit - 1e-6)) * self.unit


def peak_bound(problem: Problem) -> PeakBound:
    """The memory of the op that needs most for itself, or that of the outputs together."""
    return _bound(Blocks(problem), _moments(problem))


def widest_node(problem: Problem) -> PeakBound:
    """The memory of the op that needs most for itself, whatever the outputs need together."""
    _, *nodes = _moments(problem)
    return _bound(Blocks(problem), nodes)


def list_needs(problem: Problem) -> list[int]:
    """The least memory that each node needs for itself."""
    blocks = Blocks(problem)
    _, *nodes = _moments(problem)
    return [_alone(blocks, moment) for moment in nodes]


_Moment = tuple[int | None, Node, Held]


def _moments(problem: Problem) -> list[_Moment]:
    """Every node with what it reads, and the end with the outputs."""
    end = (None, problem.end(), Held(frozenset(), frozenset(problem.outputs)))
    return [end, *((index, node, Held(frozenset(node.reads))) for index, node in enumerate(problem.nodes))]


def _bound(blocks: Blocks, moments: Sequence[_Moment]) -> PeakBound:
    """That of the first moment that needs most."""
    alone = [_alone(blocks, moment) for moment in moments]
    index, node, _ = moments[alone.index(max(alone))]
    return PeakBound(max(alone), index, tuple(sorted({*node.reads, *blocks.taken(node)})))


def _alone(blocks: Blocks, moment: _Moment) -> int:
    """The least memory that a node needs for itself."""
    _, node, held = moment
    return needs(blocks, node, held, Held(frozenset()))


def needs(blocks: Blocks, node: Node, before: Held, after: Held) -> int:
    """The least memory while a node runs, between what is held before and what is held of that and more afterwards."""
    problem = blocks.problem
    taken = sum(problem.sizes[write] for write in blocks.taken(node, after.values, after.last))
    return problem.resident + node.workspace + blocks.held(before.values, before.last) + taken
