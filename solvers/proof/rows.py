"""Rows that hold for every schedule: what a certificate may add up. `docs/reference/certificates.md` proves each.

Of a schedule within the budget, and of times cut at pivots (`timeline`), these numbers between 0 and 1 speak:

    runs(g, j)     1 if node j runs in group g
    held(g, v)     1 if a copy of v that is there once the pivot before group g has first run is read, or put out, later
    through(g, v)  1 if held(g, v) and that copy is there until the last first compute of group g
    block(g, r)    the largest share of most(r) bytes that floors of held values with root r take when group g begins

Invariant: a row is made from the problem, the budget, the timeline and its name alone. It says that a sum of whole
multiples of these numbers is at least a whole number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from solvers.problem import RESIDENT, Node, Problem
from solvers.proof.memory import BlockMemory
from solvers.proof.timeline import PivotTimeline, Unproved

Number = tuple[str, int, int]  # kind, group, and the node, value or root
Name = tuple[str | int, ...]  # the name of a row: its kind, and what it is about
WHOLE = ("runs", "held")  # numbers that are 0 or 1, so that cases can tell them apart


@dataclass(slots=True)
class Row:
    """sum of terms >= low."""

    low: int
    terms: dict[Number, int] = field(default_factory=dict)

    def add(self, number: Number | int, times: int) -> None:
        """Add a number to the row; a known number (0 or 1) goes to the other side."""
        if isinstance(number, int):
            self.low -= number * times
        elif times:
            self.terms[number] = self.terms.get(number, 0) + times


class Rows:
    """All rows of a problem within a budget."""

    def __init__(self, ended: Problem, budget: int, time: PivotTimeline) -> None:
        self.problem, self.budget, self.time = ended, budget, time
        self.writer = ended.writers()
        self.memory = BlockMemory(ended)
        self.groups = len(time.pivots) + 1
        self.kinds: dict[str, Callable[..., Row]] = {
            "run": self.run,
            "once": self.once,
            "keep": self.keep,
            "read": self.read,
            "wait": self.wait,
            "trace": self.trace,
            "fit": self.fit,
            "block": self.block,
            "peak": self.peak,
            "through": self.through,
        }

    def row(self, name: Name) -> Row:
        """The row of this name; a name that belongs to no row is refused."""
        kind, *about = name
        if kind not in self.kinds or not all(type(number) is int and number >= 0 for number in about):
            raise Unproved(f"there is no row {list(name)}")
        try:
            return self.kinds[str(kind)](*about)
        except (TypeError, IndexError, KeyError) as error:
            raise Unproved(f"there is no row {list(name)}") from error

    def runs(self, group: int, node: int) -> Number | int:
        low, high = self.time.low[node], self.time.high[node]
        if group >= self.groups:
            raise IndexError
        if group < low or (group > high and self.problem.nodes[node].once):
            return 0
        return 1 if low == group == high else ("runs", group, node)

    def made(self, group: int, value: int) -> Number | int:
        return self.runs(group, self.writer[value])

    def held(self, group: int, value: int) -> Number | int:
        """The number of a held copy. A copy that is there when a group begins was made in an earlier group."""
        return ("held", group, value) if self.time.low[self.writer[value]] < group < self.groups else 0

    def end_of(self, group: int) -> Node:
        """The last first compute of a group, or the end."""
        pivots = self.time.pivots
        return self.problem.nodes[pivots[group] if group < len(pivots) else -1]

    def run(self, node: int) -> Row:
        """A node runs in a group of its window."""
        row = Row(1)
        for group in range(self.time.low[node], self.time.high[node] + 1):
            row.add(self.runs(group, node), 1)
        return row

    def once(self, node: int) -> Row:
        """A node that may run only once does so in one group."""
        if not self.problem.nodes[node].once:
            raise Unproved(f"node {node} may run more than once")
        row = self.run(node)
        return Row(-1 if row.terms else 0, dict.fromkeys(row.terms, -1))

    def keep(self, group: int, value: int) -> Row:
        """A value that is held at the end of a group was held at its beginning, or made in it."""
        row = Row(0)
        row.add(self.held(group, value), 1)
        row.add(self.made(group, value), 1)
        row.add(self.held(group + 1, value), -1)
        return row

    def read(self, group: int, node: int, value: int) -> Row:
        """What a node reads in a group was held when the group began, or is made in it."""
        self._reads(node, value)
        row = Row(0)
        row.add(self.held(group, value), 1)
        row.add(self.made(group, value), 1)
        row.add(self.runs(group, node), -1)
        return row

    def wait(self, group: int, node: int, *values: int) -> Row:
        """When a group begins, a node has run, or its read is held; or what that is made from, and so on; or what made
        the last of the values runs from then on, before the node's window ends."""
        low, high = self.time.low[node], self.time.high[node]
        if group > high:
            raise Unproved(f"node {node} does not wait for group {group}")
        row = Row(1)
        self._run_between(row, self._follow(row, group, node, values), group, high)
        self._run_between(row, node, low, group - 1)
        return row

    def trace(self, group: int, until: int, node: int, *values: int) -> Row:
        """What a node reads was held as an earlier group began; or what that is made from was, and so on; or, at the
        end of the trace, what made the last of the values ran since."""
        if group > until:
            raise Unproved(f"group {until} is not after group {group}")
        row = Row(0)
        self._run_between(row, self._follow(row, group, node, values), group, until)
        row.add(self.runs(until, node), -1)
        return row

    def _follow(self, row: Row, group: int, node: int, values: Iterable[int]) -> int:
        """Add what is held of the values when a group begins; the result is the node that wrote the last of them."""
        for value in values:
            self._reads(node, value)
            row.add(self.held(group, value), 1)
            node = self.writer[value]
        return node

    def _run_between(self, row: Row, node: int, first: int, last: int) -> None:
        for group in range(first, last + 1):
            row.add(self.runs(group, node), 1)

    def _reads(self, node: int, value: int) -> None:
        if value not in self.problem.nodes[node].reads:
            raise Unproved(f"node {node} does not read value {value}")

    def fit(self, group: int) -> Row:
        """While the pivot before a group first runs, all that is in memory fits."""
        pivot = self._pivot(group)
        node = self.problem.nodes[pivot]
        own = self.problem.resident + node.workspace + self.memory.held(node.reads) + self._stuck(group, pivot)
        row = Row(own - self.budget)
        there = [value for value in range(len(self.problem.sizes)) if isinstance(self.held(group, value), tuple)]
        for root, values in self._apart(there, node).items():
            row.add(self.held(group, values[0]) if len(values) == 1 else ("block", group, root), -self._most(values))
        for write in node.writes:
            self._room(row, group, pivot, write)
        return row

    def _pivot(self, group: int) -> int:
        if not 1 <= group < self.groups:
            raise Unproved(f"no pivot stands before group {group}")
        return self.time.pivots[group - 1]

    def _stuck(self, group: int, pivot: int) -> int:
        """Bytes that are never freed, of nodes other than the pivot that have run when a group begins."""
        writers = ((value, self.writer[value]) for value in self.memory.stuck)
        sizes = self.problem.sizes
        return sum(sizes[value] for value, node in writers if node != pivot and self.time.high[node] < group)

    def _apart(self, values: Iterable[int], node: Node) -> dict[int, list[int]]:
        """The values in blocks that the node does not touch, by root."""
        memory = self.memory
        touched = {RESIDENT, *(memory.root[value] for value in node.reads)}
        found: dict[int, list[int]] = {}
        for value in values:
            if memory.root[value] not in touched and value not in node.writes and memory.floor[value]:
                found.setdefault(memory.root[value], []).append(value)
        return found

    def _most(self, values: list[int]) -> int:
        return self.memory.floor[values[0]] if len(values) == 1 else self.memory.most[self.memory.root[values[0]]]

    def _room(self, row: Row, group: int, pivot: int, write: int) -> None:
        """The bytes that a write of a pivot takes."""
        node, size, memory = self.problem.nodes[pivot], self.problem.sizes[write], self.memory
        if write in self.problem.optional:
            if memory.owns(node, write):
                row.add(self.held(group, write), -size)
        elif memory.owns(node, write):
            row.low += size
        # the last copy of an output has memory of its own, and this is it if none is made later
        elif write in memory.outputs:
            row.low += size
            for later in range(group, self.groups):
                row.add(self.runs(later, pivot), size)
        elif node.base(write) is None and len(places := memory.places(node, write)) == 1:
            row.add(self.held(group, places[0]), -size)

    def block(self, group: int, value: int) -> Row:
        """A block holds each of the values that lie in it."""
        root = self.memory.root[value]
        row = Row(0)
        row.add(("block", group, root), self.memory.most[root])
        row.add(self.held(group, value), -self.memory.floor[value])
        return row

    def peak(self, group: int, index: int) -> Row:
        """If a node runs in a group, it fits beside all that is in memory throughout the group."""
        node, memory = self.problem.nodes[index], self.memory
        row = Row(self.problem.resident + self._stuck(group, -1) - self.budget)
        row.add(self.runs(group, index), -(node.workspace + memory.held(node.reads) + memory.written(node)))
        for values in self._apart(self.staying(group), node).values():
            value = max(values, key=memory.floor.__getitem__)
            row.add(("through", group, value), -memory.floor[value])
        return row

    def staying(self, group: int) -> list[int]:
        """The values of which a copy may be there throughout a group."""
        last = self.end_of(group).reads
        return [
            value
            for value in range(len(self.problem.sizes))
            if self.held(group, value) != 0
            and self.made(group, value) != 1
            and (value in last or self.held(group + 1, value) != 0)
        ]

    def through(self, group: int, value: int) -> Row:
        """A value that is held as a group ends, or read in it, and is not made in it, is there throughout."""
        row = Row(0)
        row.add(("through", group, value), 1)
        row.add(1 if value in self.end_of(group).reads else self.held(group + 1, value), -1)
        row.add(self.made(group, value), 1)
        return row
