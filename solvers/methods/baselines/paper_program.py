"""Checkmate's program, equations (1) to (8) as printed: Jain et al., arXiv 1910.02653, section 4.

Symbols: R[t, i] is R_{t,i}: op i runs in stage t. S[t, v] is S_{t,i}, by value: v is in memory when stage t begins.
FREE[t, v, k] is FREE_{t,i,k}: v is freed in stage t right after op k. U[t, k] is U_{t,k}: bytes in use while op k runs.
Variables that (8b) and (8c) fix at 0 are left out, which changes nothing. Without stages, (8) is dropped.

Beyond the paper, for what a Problem can say: an op may write several values; every op that nobody reads must run, not
only the last; workspace counts while an op runs; `once` ops run once; outputs are held after the last stage; a write
that takes the place of a read, or is left out, is given back at once by its FREE. With k splits each stage is cut into
k, and an op may run k times between two first computes (section 4.10).

Invariant: every solution is a legal order; its peak, but for memory counted optimistically, is within the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import gcd

from solvers.problem import Problem
from solvers.scip import Program

Key = tuple[int, int]


LARGEST = 250_000  # as many variables fit into 1.5 GB together with SCIP's own data


def too_large(problem: Problem, stages: bool = True, splits: int = 1) -> bool:
    """Whether the program would not fit into memory: R, S and U for each op, FREE for each value it touches."""
    each_stage = sum(3 + len(node.reads) + len(node.writes) for node in problem.nodes)
    return len(problem.nodes) * splits * each_stage // (2 if stages else 1) > LARGEST


@dataclass(slots=True)
class PaperProgram:
    """The program and where its variables are; costs and sizes are divided by their greatest common divisors."""

    problem: Problem
    budget: int
    stages: bool = True
    splits: int = 1
    eliminate: bool = False  # FREE_{t,k,k}
    program: Program = field(default_factory=Program)
    R: dict[Key, int] = field(default_factory=dict)
    S: dict[Key, int] = field(default_factory=dict)
    FREE: dict[tuple[int, int, int], int] = field(default_factory=dict)
    U: dict[Key, int] = field(default_factory=dict)
    cost_unit: int = 1
    size_unit: int = 1
    writer: list[int] = field(default_factory=list)
    users: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        problem = self.problem
        self.writer, self.users = problem.writers(), problem.readers()
        self.cost_unit = reduce(gcd, (node.cost for node in problem.nodes), 0) or 1
        self.size_unit = reduce(gcd, problem.sizes, reduce(gcd, (n.workspace for n in problem.nodes), 0)) or 1
        self._objective()
        self._retention()
        self._correctness()
        self._completeness()
        for stage in range(self.count):
            self._memory(stage)

    @property
    def count(self) -> int:
        return len(self.problem.nodes) * self.splits

    def ops_of(self, stage: int) -> range:
        """The ops that may run in a stage: up to the frontier, (8c)."""
        return range(stage // self.splits + 1 if self.stages else len(self.problem.nodes))

    def order(self, values: Sequence[float]) -> list[int]:
        """Algorithm 1, without its frees: the computes of each stage, in order."""
        return [op for stage in range(self.count) for op in self.ops_of(stage) if values[self.R[stage, op]] > 0.5]

    def _objective(self) -> None:
        """(1a), with (8a), R_tt = 1, and (8c)."""
        for stage in range(self.count):
            for op in self.ops_of(stage):
                node = self.problem.nodes[op]
                first = stage == op * self.splits + self.splits - 1
                early = self.stages and op == stage // self.splits and not first
                never = early or (self.stages and node.once and not first)
                self.R[stage, op] = self.program.variable(
                    node.cost / self.cost_unit, low=float(first and self.stages), high=float(not never)
                )

    def _retention(self) -> None:
        """S, with (1d) and (8b): nothing is held before the first stage, nor before it can have been computed."""
        forever = _never_freed(self.problem) if self.stages else frozenset[int]()
        for stage in range(1, self.count):
            for value, op in enumerate(self.writer):
                if op in self.ops_of(stage - 1):
                    made = stage > op * self.splits + self.splits - 1
                    self.S[stage, value] = self.program.variable(low=float(made and value in forever))

    def _correctness(self) -> None:
        for stage in range(self.count):
            for op in self.ops_of(stage):
                for value in self.problem.nodes[op].reads:  # (1b)
                    row = [self.R[stage, op], self.R[stage, self.writer[value]], *self._held(stage, value)]
                    self.program.row(row, [1.0] + [-1.0] * (len(row) - 1), high=0.0)
        for (stage, value), kept in self.S.items():  # (1c)
            row = [kept, self.R[stage - 1, self.writer[value]], *self._held(stage - 1, value)]
            self.program.row(row, [1.0] + [-1.0] * (len(row) - 1), high=0.0)

    def _completeness(self) -> None:
        """(1e), for every op that nobody reads; and the outputs are there at the end."""
        last = self.count - 1
        for op, node in enumerate(self.problem.nodes):
            runs = [self.R[stage, op] for stage in range(self.count) if op in self.ops_of(stage)]
            if not self.stages and not any(self.users[value] for value in node.writes):
                self.program.row(runs, [1.0] * len(runs), low=1.0)
            if not self.stages and node.once:
                self.program.row(runs, [1.0] * len(runs), high=1.0)
        for value in self.problem.outputs:
            row = [self.R[last, self.writer[value]], *self._held(last, value)]
            self.program.row(row, [1.0] * len(row), low=1.0)

    def _held(self, stage: int, value: int) -> list[int]:
        return [self.S[stage, value]] if (stage, value) in self.S else []

    def held_in(self, stage: int) -> list[Key]:
        """(value, its S) for all values that may be held when the stage begins."""
        return [(v, self.S[stage, v]) for v in range(len(self.writer)) if (stage, v) in self.S]

    def size(self, value: int) -> float:
        return self.problem.sizes[value] / self.size_unit

    def _memory(self, stage: int) -> None:
        """(2) to (7) for one stage."""
        program = self.program
        room = (self.budget - self.problem.resident) / self.size_unit
        before = {held: self.size(value) for value, held in self.held_in(stage)}  # (2)
        for op in self.ops_of(stage):
            node = self.problem.nodes[op]
            here = self.U[stage, op] = program.variable(high=float("inf"), whole=False)
            made = sum(self.size(value) for value in node.writes)
            row = {**before, self.R[stage, op]: made, here: -1.0}  # (3)
            program.row(list(row), list(row.values()), low=0.0, high=0.0)
            before = {here: 1.0}
            for value in dict.fromkeys((*node.reads, *self._freed_writes(op))):  # (4)
                free = self._free(stage, value, op)
                before[free] = -self.size(value)
            bound = {here: 1.0, self.R[stage, op]: node.workspace / self.size_unit}
            for value in _given_back(self.problem, op):
                bound[self.FREE[stage, value, op]] = -self.size(value)
            program.row(list(bound), list(bound.values()), high=room)

    def _freed_writes(self, op: int) -> tuple[int, ...]:
        """What an op writes and may free at once; with FREE_{t,k,k} eliminated, only what others may do without.

        An op's one result that somebody reads is computed to be read or kept, or else its computing is idle, which no
        optimum needs: its FREE right after it would be 0.
        """
        node = self.problem.nodes[op]
        wanted = len(node.writes) == 1 and self.users[node.writes[0]] and node.writes[0] not in self.problem.optional
        return () if self.eliminate and wanted else node.writes

    def _free(self, stage: int, value: int, op: int) -> int:
        """(5) as (7a) to (7c): FREE = 1 if and only if there is no hazard."""
        free = self.FREE[stage, value, op] = self.program.variable()
        later = [self.R[stage, user] for user in self.users[value] if user > op and user in self.ops_of(stage)]
        hazards = [*later, *self._held(stage + 1, value)]
        always = 1.0 if stage == self.count - 1 and value in self.problem.outputs else 0.0
        most = len(hazards) + 1 + always  # kappa
        columns = [self.R[stage, op], *hazards, free]
        signs = [-1.0] + [1.0] * len(hazards)
        self.program.row(columns, [*signs, 1.0], low=-always)  # (7b): 1 - FREE <= hazards
        self.program.row(columns, [*signs, most], high=most - 1.0 - always)  # (7c): kappa (1 - FREE) >= hazards
        return free


def _never_freed(problem: Problem) -> frozenset[int]:
    """Values that stay to the end once computed: the runtime frees nothing unread that has memory of its own."""
    freed = {value for node in problem.nodes for value in node.reads} | problem.optional
    freed.update(*(node.sharing() for node in problem.nodes))
    unread = (value for value in range(len(problem.sizes)) if value not in freed)
    return frozenset(unread) if problem.unread_stay else frozenset()


def _given_back(problem: Problem, op: int) -> list[int]:
    """Values whose FREE after `op` makes room while it runs: reads that may be overwritten, writes that may be left
    out. Counted optimistically, so that the program's bound holds; what a schedule needs is for `simulate` to say.
    """
    node = problem.nodes[op]
    over = (read for write, read in node.overwrites if problem.sizes[write] == problem.sizes[read])
    return list(dict.fromkeys([*over, *(write for write in node.writes if write in problem.optional)]))
