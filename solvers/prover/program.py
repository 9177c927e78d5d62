"""The linear program whose duals are a certificate: the rows that matter, out of all that hold.

Invariant: this module only chooses; each row is `Rows`' own. A number without a column costs nothing at 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from solvers.proof.check import row_of
from solvers.proof.rows import Name, Number, Row, Rows


class ProofProgram:
    """`rows`: by name, in the order found. `columns`: the numbers they need."""

    def __init__(self, rows: Rows, free: frozenset[int], peaks: Iterable[tuple[int, int]]) -> None:
        """`free`: values that are left out. `peaks`: pairs (group, node); the node must fit beside what stays through
        the group."""
        self.source, self.free = rows, free
        self.rows: dict[Name, Row] = {}
        self.columns: dict[Number, int] = {}
        self._waiting: list[Number] = []
        self._surely = self._surely_read()
        self._first_runs()
        self._memory(peaks)

    def _surely_read(self) -> list[dict[int, int]]:
        """For each group, the values that some node surely reads in it, each with one such node."""
        found: list[dict[int, int]] = [{} for _ in range(self.source.groups)]
        for index, node in enumerate(self.source.problem.nodes):
            if self.source.time.sure(index):
                for value in node.reads:
                    found[self.source.time.low[index]].setdefault(value, index)
        return found

    def _first_runs(self) -> None:
        time, nodes = self.source.time, self.source.problem.nodes
        for group, values in enumerate(self._surely):
            for value, reader in values.items():
                self._need("read", group, reader, value)
        for index, node in enumerate(nodes):
            if time.sure(index):
                continue
            self._add("once" if node.once else "run", index)
            self._add("run", index)
            for group in range(time.low[index] + 1, time.high[index] + 1):
                for value in node.reads:
                    self._need("wait", group, index, value)
        self._follow()

    def _follow(self) -> None:
        """Add the rows that the numbers found so far need."""
        while self._waiting:
            what, group, about = self._waiting.pop()
            if what == "runs":
                for value in self.source.problem.nodes[about].reads:
                    if value not in self._surely[group]:
                        self._need("read", group, about, value)
            elif what == "held" and about not in self._surely[group - 1]:
                self._need("keep", group - 1, about)

    def _need(self, *name: str | int) -> None:
        if name[-1] not in self.free:
            self._add(*name)

    def _add(self, *name: str | int) -> None:
        row = self.source.row(name)
        if name in self.rows or not (row.terms and (row.low > 0 or min(row.terms.values()) < 0)):
            return
        self.rows[name] = row
        for number in row.terms:
            if number not in self.columns:
                self.columns[number] = len(self.columns)
                self._waiting.append(number)

    def add(self, name: Name) -> bool:
        """Add a row whose numbers have columns; the result says whether it is new."""
        if name in self.rows:
            return False
        self.rows[name] = row_of(self.source, name, list(self.rows.values()))
        return True

    def _memory(self, peaks: Iterable[tuple[int, int]]) -> None:
        for group, node in sorted(set(peaks)):
            self._peak(group, node)
        self._follow()
        for group in range(1, self.source.groups):
            row = self.rows["fit", group] = self.source.fit(group)
            self._blocks(group, {number for number in row.terms if number[0] == "block"})

    def _peak(self, group: int, node: int) -> None:
        if ("peak", group, node) in self.rows or self.source.runs(group, node) == 0:
            return
        row = self.rows["peak", group, node] = self.source.peak(group, node)
        for number in row.terms:
            if number[0] == "through" and ("held", group, number[2]) in self.columns:
                self.columns.setdefault(number, len(self.columns))
                self._add("through", group, number[2])

    def _blocks(self, group: int, blocks: set[Number]) -> None:
        for what, at, value in list(self.columns):
            if what == "held" and at == group and ("block", group, self.source.memory.root[value]) in blocks:
                self._add("block", group, value)
