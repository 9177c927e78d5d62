"""Fusion groups: which ops of a graph share a kernel.

Greedy, from the last op to the first, as PyTorch's partitioner goes: each op joins the groups of the neighbours that
read from it and can fuse with it, as long as the groups can still be run one after the other. Invariant: the groups,
taken as single ops, form a graph without cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Groups = list[list[int]]


def fused(sources: Sequence[Sequence[int]], fuses: Callable[[int, int], bool]) -> Groups:
    """The groups of ops, each in order, by first op. `sources[i]`: earlier ops that op i reads from."""
    users: list[list[int]] = [[] for _ in sources]
    for op, read in enumerate(sources):
        for source in read:
            users[source].append(op)
    grouping = _Grouping()
    last = len(sources) - 1
    for op in range(last, -1, -1):  # the graph upside down: what reads an op stands above it
        grouping.add([last - user for user in users[op]])
        for user in users[op]:
            if fuses(op, user):
                grouping.join(grouping.of[last - user], grouping.of[last - op])
    return sorted(sorted(last - place for place in members) for members in grouping.members.values())


class _Grouping:
    """Groups by number: members, the groups they read from and are read by, and all groups above them, as bits."""

    def __init__(self) -> None:
        self.of: list[int] = []  # op -> its group
        self.members: dict[int, list[int]] = {}
        self.read: dict[int, set[int]] = {}
        self.readers: dict[int, set[int]] = {}
        self.above: dict[int, int] = {}

    def add(self, sources: Sequence[int]) -> None:
        """A group of its own for the next op, which nothing reads yet."""
        op = len(self.of)
        self.of.append(op)
        self.members[op] = [op]
        self.read[op] = {self.of[source] for source in sources}
        self.readers[op] = set()
        self.above[op] = 0
        for group in self.read[op]:
            self.readers[group].add(op)
            self.above[op] |= self.above[group] | 1 << group

    def join(self, first: int, second: int) -> None:
        """Make two groups one, unless something must run between them."""
        if first == second or self._apart(first, second) or self._apart(second, first):
            return
        both, had = {first, second}, self.above[first]
        known = bool(self.readers[second])
        for op in self.members[second]:
            self.of[op] = first
        self.members[first] += self.members.pop(second)
        for group in self.read[second]:
            _rename(self.readers[group], second, first)
        for group in self.readers[second]:
            _rename(self.read[group], second, first)
        self.read[first] = (self.read[first] | self.read.pop(second)) - both
        self.readers[first] = (self.readers[first] | self.readers.pop(second)) - both
        self.above[first] = (self.above[first] | self.above.pop(second)) & ~(1 << first | 1 << second)
        if not known and self.above[first] == had:
            return  # no group below has the second above it, or gains what that has
        kept, more = ~(1 << second), 1 << first | self.above[first]
        for group in self._below(first):
            self.above[group] = self.above[group] & kept | more

    def _below(self, first: int) -> set[int]:
        """All groups that read from it, by themselves or through others: few, as ops are added from the top."""
        found, left = set[int](), [first]
        while left:
            fresh = self.readers[left.pop()] - found
            found |= fresh
            left += fresh
        return found

    def _apart(self, first: int, second: int) -> bool:
        """Whether the second reads from a third group that comes after the first."""
        return any(self.above[group] >> first & 1 for group in self.read[second] if group != first)


def _rename(groups: set[int], old: int, new: int) -> None:
    groups.remove(old)
    groups.add(new)
