"""When nodes can first run: time cut at the first computes of a few pivots.

Group g is the time after the first compute of the pivot before it, up to and with that of `pivots[g]`; the last group
ends with the schedule. Sketch of a proof: what a node reads was first computed before the node first was, and so were
the nodes that stand before it in `order`; so it first runs after every pivot that comes before it along such steps,
and not after a pivot that it comes before.

Invariant: in every legal schedule whose first computes of the nodes in `order` come in that order, every node first
runs in a group from `low` to `high`. There is such a schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from solvers.problem import Problem


class Unproved(ValueError):
    """The claim of a certificate does not follow from its proof; the message says where."""


@dataclass(frozen=True, slots=True)
class PivotTimeline:
    """`low`, `high`: of every node, and of the end, which runs in the last group."""

    pivots: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def sure(self, node: int) -> bool:
        return self.low[node] == self.high[node]


def timeline(ended: Problem, order: Sequence[int], pivots: Sequence[int]) -> PivotTimeline:
    """The timeline of a problem whose last node is its end."""
    count = len(ended.nodes) - 1
    for named, said in ((order, "order"), (pivots, "pivots")):
        if len(set(named)) < len(named) or not all(0 <= node < count for node in named):
            raise Unproved(f"'{said}' names a node twice, or one that does not exist")
    before, after = _precedence(ended, order)
    try:
        sequence = list(TopologicalSorter(dict(enumerate(before))).static_order())
    except CycleError as error:
        raise Unproved("no schedule first computes the nodes in the order given") from error
    place = {pivot: group for group, pivot in enumerate(pivots)}
    low, high = [0] * (count + 1), [len(pivots)] * (count + 1)
    for node in sequence:
        low[node] = max((place[n] + 1 if n in place else low[n] for n in before[node]), default=0)
    low[count] = len(pivots)
    for node in reversed(sequence):
        high[node] = place.get(node, min((high[n] for n in after[node]), default=len(pivots)))
    for pivot, group in place.items():
        if low[pivot] != group:
            raise Unproved(f"pivot {pivot} need not first run after the pivot before it")
    return PivotTimeline(tuple(pivots), tuple(low), tuple(high))


def _precedence(ended: Problem, order: Sequence[int]) -> tuple[list[set[int]], list[set[int]]]:
    """The nodes that first run before each node, and after it: those next to it."""
    writer = ended.writers()
    before: list[set[int]] = [{writer[value] for value in node.reads} for node in ended.nodes]
    for one, next_one in pairwise(order):
        before[next_one].add(one)
    after: list[set[int]] = [set() for _ in ended.nodes]
    for node, sources in enumerate(before):
        for source in sources:
            after[source].add(node)
    return before, after
