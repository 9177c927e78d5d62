"""Recomputation between fusion groups: a group may recompute a value from smaller ones instead of reading it.

Yu and He, section 3.7: for a group and one that reads from it, the cheapest set of values to hand over is a minimum cut
in the first group. A value costs its reading, unless the second group reads it anyway, and its writing, if nobody else
needs it written. The values behind the cut are recomputed in the second group.

Invariant: the traffic of the resulting order is never higher than that of the given one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvers.methods.mincut.flow import INFINITE, minimum_cut
from solvers.methods.mincut.groups import Groups
from solvers.methods.mincut.traffic import FUSIBLE, TAKEN, Copy, Runs, count, groups_of, runs_of
from solvers.problem import Problem

MOST = 60  # the most changes that are tried


@dataclass(frozen=True, slots=True)
class Change:
    """The nodes to recompute, the step of the order at which to begin, and the bytes that this should save."""

    gain: int
    step: int
    nodes: tuple[int, ...]


def between_groups(problem: Problem, order: Sequence[int], fusion: str = "ideal") -> tuple[int, ...]:
    """The order with the profitable pairs of groups changed, the most profitable first."""
    best = tuple(order)
    total, changes = _weighed(problem, best, fusion)
    for _ in range(MOST):
        if not changes:
            break
        change = changes.pop(0)
        tried = (*best[: change.step], *change.nodes, *best[change.step :])
        less, further = _weighed(problem, tried, fusion)
        if less < total:
            best, total, changes = tried, less, further
    return best


def _weighed(problem: Problem, order: Sequence[int], fusion: str) -> tuple[int, list[Change]]:
    """The traffic of an order, and the changes that may lower it."""
    runs = runs_of(problem, order)
    groups = groups_of(problem, runs, fusion)
    found = _Pairs(problem, runs, groups).changes()
    return count(runs, groups).total, sorted(found, key=lambda change: (-change.gain, change.step))


class _Pairs:
    """The pairs of groups of which one reads from the other."""

    def __init__(self, problem: Problem, runs: Runs, groups: Groups) -> None:
        self.problem, self.runs, self.groups = problem, runs, groups
        self.group_of = {run: number for number, members in enumerate(groups) for run in members}
        self.users: dict[Copy, set[int]] = {}  # copy -> the groups that read it
        for run, copies in enumerate(runs.reads):
            for copy in copies:
                self.users.setdefault(copy, set()).add(self.group_of[run])

    def changes(self) -> list[Change]:
        found = []
        for first, members in enumerate(self.groups):
            if not all(self._is_cheap(run) for run in members):
                continue
            made = [copy for run in members for copy in self.runs.makes[run]]
            for second in sorted({user for copy in made for user in self.users.get(copy, ()) if user != first}):
                change = self._change(first, second, made) if self._is_cheap(self.groups[second][0]) else None
                if change:
                    found.append(change)
        return found

    def _is_cheap(self, run: int) -> bool:
        return self.problem.nodes[self.runs.nodes[run]].kind in FUSIBLE

    def _change(self, first: int, second: int, made: Sequence[Copy]) -> Change | None:
        """The values that the second group should recompute, if any."""
        members = self.groups[first]
        wanted = [copy for copy in made if second in self.users.get(copy, ())]
        given = {copy for run in members for copy in self.runs.reads[run]} - set(made)
        price = {copy: self._price(copy, first, second) for copy in (*made, *sorted(given))}
        now = sum(price[copy] for copy in wanted)
        value, near = self._cut(members, price, given, wanted)
        if value >= now:
            return None
        handed = {copy for place, copy in enumerate(price) if near[2 * place] and not near[2 * place + 1]}
        again = self._behind(members, handed, wanted)
        readers = [run for run in self.groups[second] if set(self.runs.reads[run]) & set(wanted)]
        return Change(now - value, self.runs.steps[readers[0]], tuple(self.runs.nodes[run] for run in again))

    def _price(self, copy: Copy, first: int, second: int) -> int:
        """The bytes of reading a value, and of writing it if only the second group needs it written."""
        size = self.runs.bytes[copy]
        if copy[0] == TAKEN or self.group_of[copy[0]] != first:
            return 0 if second in self.users[copy] else size
        others = self.users.get(copy, set()) - {first, second}
        return size if others or copy in self.runs.outputs else 2 * size

    def _cut(
        self, members: Sequence[int], price: dict[Copy, int], given: set[Copy], wanted: Sequence[Copy]
    ) -> tuple[int, list[bool]]:
        place = {copy: number for number, copy in enumerate(price)}
        source, sink = 2 * len(price), 2 * len(price) + 1
        arcs = [(2 * place[copy], 2 * place[copy] + 1, bytes_) for copy, bytes_ in price.items()]
        arcs += [(source, 2 * place[copy], INFINITE) for copy in given]
        arcs += [(2 * place[copy] + 1, sink, INFINITE) for copy in wanted]
        for run in members:
            for copy in self.runs.makes[run]:
                if self.problem.nodes[self.runs.nodes[run]].once or not self.runs.reads[run]:
                    arcs.append((source, 2 * place[copy], INFINITE))
                arcs += [(2 * place[read] + 1, 2 * place[copy], INFINITE) for read in self.runs.reads[run]]
        found = minimum_cut(sink + 1, arcs, source, sink)
        return found.value, found.near.tolist()

    def _behind(self, members: Sequence[int], handed: set[Copy], wanted: Sequence[Copy]) -> list[int]:
        """The computes that make the wanted values from those handed over."""
        needed = {copy for copy in wanted if copy not in handed}
        again = []
        for run in reversed(members):
            if needed & set(self.runs.makes[run]):
                again.append(run)
                needed.update(copy for copy in self.runs.reads[run] if copy not in handed)
        return again[::-1]
