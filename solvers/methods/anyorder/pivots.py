"""Pivots chosen by what a linear relaxation with them says.

Where a node needs nearly the whole budget for itself, nearly nothing else is held while it first runs. One such moment
can say more than twenty on a path through most of the graph, and takes a small relaxation. Such nodes often lie beside
the path: the gradients of weights, the loss. So each is tried alone, and the best is given others as long as they help.

Invariant: the pivots chosen lie on one path. Counts decide how many are tried, never seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from solvers.pebbles.copies import needed
from solvers.problem import Problem

# nodes that need most for themselves, as many where the order as given needs most, and as many, the best alone first,
# that are tried beside those chosen
_TRIED = 10
_TINY = 1e-6  # share of the least cost below which a rise is none
_GAIN = 0.01  # share of the rise so far that a further pivot must add

Pivots = tuple[int, ...]
Choosing = Generator[None, None, Pivots]  # pauses before each relaxation


@dataclass(slots=True)
class PivotChoice:
    """`weigh`: the cost that the relaxation with these pivots says; None if no more may be tried."""

    problem: Problem
    weigh: Callable[[Pivots], float | None]
    least: float  # what all schedules are known to cost
    found: dict[Pivots, float] = field(default_factory=dict)

    def run(
        self,
        given: Sequence[int],
        memory: Sequence[int],
        needs: Sequence[int],
        budget: int,
        moments: Sequence[int] = (),
    ) -> Choosing:
        """The best pivots met. `given`: those on the path, which stay unless others say more. `memory`: of each node in
        the order as given; `needs`: of each alone; `moments`: nodes to try whatever they need."""
        known = self.weigh(tuple(given)) if given else None
        over = [node for node, held in enumerate(memory) if held > budget and node not in moments]
        alone = sorted(over, key=needs.__getitem__, reverse=True)[:_TRIED]
        held = sorted(over, key=memory.__getitem__, reverse=True)[:_TRIED]
        candidates = list(dict.fromkeys([*moments, *alone, *held, *given]))
        for node in candidates:
            yield
            self._try((node,))
        candidates.sort(key=lambda node: self.found.get((node,), self.least), reverse=True)
        ancestors, best = needed(self.problem, self.problem.writers()), self._best()
        while best and (grown := (yield from self._grow(best, candidates, ancestors))) != best:
            best = grown
        enough = max(_TINY * self.least, 0.0 if known is None else known - self.least)
        return best if self._rise(best) > enough else tuple(given)

    def _best(self) -> Pivots:
        return max(self.found, key=self.found.__getitem__, default=())

    def _rise(self, pivots: Pivots) -> float:
        return self.found.get(pivots, self.least) - self.least

    def _grow(self, pivots: Pivots, candidates: Sequence[int], ancestors: Sequence[int]) -> Choosing:
        """The pivots with the candidate that adds most, if that is enough."""
        others = (node for node in candidates if node not in pivots)
        near = (n for n in others if all((ancestors[n] >> p | ancestors[p] >> n) & 1 for p in pivots))
        for node in islice(near, _TRIED):
            yield
            self._try(tuple(sorted((*pivots, node))))
        best = self._best()
        return best if self._rise(best) > (1 + _GAIN) * max(0.0, self._rise(pivots)) else pivots

    def _try(self, pivots: Pivots) -> None:
        if pivots not in self.found and (cost := self.weigh(pivots)) is not None:
            self.found[pivots] = cost
