"""The cheapest schedule of a small problem, by a search over what is held: for where walks and annealing find nothing.

The search runs backwards, from the outputs to nothing. What is held after a compute determines what is held before it,
because a copy is held if and only if it will be read before it is made again. A state is the set of held values, and
the nodes whose first compute lies before it. Only repeats have a cost, because everything runs once in any case.
Whether a copy shares its block with another depends on earlier computes, which are not known yet. There the memory is
`Blocks`' lower bound, so that a path may turn out not to fit. Then the next cheapest paths are tried, several to each
state.

Invariant: `bound` holds for every schedule of the class asked for, as does `infeasible`; the work is counted in states.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from solvers.clock import Clock
from solvers.orders.best import Best
from solvers.orders.blocks import Blocks
from solvers.orders.bounds import Held, cost_bound, needs
from solvers.problem import Problem

MOST = 12  # in nodes
_STATES = 20_000
_WAYS = 40  # paths to one state, if the cheapest does not fit


@dataclass(frozen=True, slots=True)
class _State:
    left: int  # a bit for each node whose first compute lies before the state
    held: Held


@dataclass(frozen=True, slots=True)
class _Path:
    """A path from a state to the end; `peak`: as far as it is known."""

    state: _State
    peak: int
    node: int = -1
    after: _Path | None = None

    def order(self) -> Iterator[int]:
        path: _Path | None = self
        while path is not None and path.node >= 0:
            yield path.node
            path = path.after


class Small:
    """Searches one problem within one budget and offers orders to `best`; `ordered`: only with the first computes as
    given."""

    def __init__(self, problem: Problem, budget: int, best: Best, clock: Clock, ordered: bool) -> None:
        self.problem = problem
        self.budget = budget
        self.best = best
        self.clock = clock
        self.ordered = ordered
        self.blocks = Blocks(problem)
        self.writer = problem.writers()
        self.bound = cost_bound(problem)
        self.infeasible = False
        self._steps: dict[tuple[int, Held], tuple[Held, int]] = {}

    def run(self) -> None:
        every = (1 << len(self.problem.nodes)) - 1
        end = Held(frozenset(), frozenset(self.problem.outputs))
        peak = self.problem.resident + self.blocks.held(end.values, end.last)
        begin = _Path(_State(every, end), peak)
        if peak > self.budget:
            self.infeasible = True
            return
        found = self._search(begin, 1)
        self.bound = found or self.bound
        if found is not None and self.best.fitting is None:
            self._search(begin, _WAYS)

    def _search(self, begin: _Path, ways: int) -> int | None:
        """The cost of the cheapest path, whether it fits or not; further paths are tried until one fits."""
        heap = [(cost_bound(self.problem), len(self.problem.nodes), begin.peak, 0, begin)]
        seen: Counter[_State] = Counter()
        pushed, first = 0, None
        while heap and pushed < _STATES * ways and not self.clock.over():
            cost, _, _, _, path = heapq.heappop(heap)
            if not path.state.left:
                first = cost if first is None else first
                if self.best.fits(self.best.offer(list(path.order()), "all schedules")) or ways == 1:
                    break
                continue
            if seen[path.state] >= ways:
                continue
            seen[path.state] += 1
            for more, longer in self._before(path):
                pushed += 1
                left = longer.state.left.bit_count()
                heapq.heappush(heap, (cost + more, left, longer.peak, pushed, longer))
        self.infeasible = self.infeasible or (not heap and first is None)
        self.clock.spend(states=pushed)
        return first

    def _before(self, path: _Path) -> Iterator[tuple[int, _Path]]:
        """The paths with one more compute before, and the cost each adds."""
        state = path.state
        after = state.held
        for index, node in enumerate(self.problem.nodes):
            if not state.left >> index & 1:
                continue
            before, peak = self._step(index, after)
            if peak > self.budget:
                continue
            longer = _Path(_State(state.left, before), max(peak, path.peak), index, path)
            left = state.left & ~(1 << index)
            if (not self.ordered or not state.left >> index + 1) and self._can_be(before, left):
                yield 0, replace(longer, state=_State(left, before))
            wanted = after.values.union(after.last)
            if not node.once and not wanted.isdisjoint(node.writes):
                yield node.cost, longer

    def _step(self, index: int, after: Held) -> tuple[Held, int]:
        """What is held before a compute, and the least memory while it runs."""
        known = self._steps.get((index, after))
        if known is None:
            node = self.problem.nodes[index]
            before = after.before(node)
            known = self._steps[index, after] = before, needs(self.blocks, node, before, after)
        return known

    def _can_be(self, held: Held, left: int) -> bool:
        """Whether all held values are made by nodes that have yet to run."""
        return all(left >> self.writer[value] & 1 for value in (*held.values, *held.last))
