"""The relaxation in which time is cut into groups: what must be held when each pivot first runs.

Pivots p_1 < ... < p_G first run in that order. Group g is the time after the first compute of p_g, up to and with that
of p_(g+1); the last group ends with the schedule. A node's window is the groups in which its first compute can be.

For each group g that a node j can run in, C(g, j) says that it does; it is surely 1 where the window of j is g alone.
S(g, v) says that value v is held from before the first compute of pivot p_g to after it.

    minimise   sum of cost(j) C(g, j), subject to
    (0)  C(g, j) over the groups of j's window >= 1, and = 1 if j may run only once
    (1)  S(g+1, v) <= S(g, v) + C(g, writer(v))
    (2)  C(g, j) <= S(g, v) + C(g, writer(v)) for each v that j reads; and for each boundary g in j's window, either j
         ran before, or v is held across it or made again: S(g, v) + C(h >= g, writer(v)) + C(h < g, j) >= 1
    (3)  when a pivot runs: its reads, its writes, its workspace and all S across it fit
    (4)  where a node was seen not to fit: if C(g, j), then what j reads and writes, its workspace and every other value
         held throughout group g, which H(g, v) >= S(g+1, v) - C(g, writer(v)) says, fit; what the last first compute
         of the group reads counts as S(g+1, v) = 1

Values that may lie in one block count once: B(g, r) >= S(g, v) for each of those whose root is r.

Invariant: every schedule whose first computes lie in their windows, however often and wherever it recomputes, gives an
answer at no greater cost (`project`). So the minimum is a bound for all of them. In-place writes count as if they
were always possible, optional writes as if they were left out unless held. Values in `free` take no room at all, and
replaceable ones (`replaceable.py`) have no S once the one node that reads them has first run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from solvers.methods.exact.replaceable import replaceable_values
from solvers.orders.blocks import Blocks
from solvers.problem import RESIDENT, Problem
from solvers.scip import INFINITY, Program

SURELY = -1  # instead of a column: always 1


@dataclass(frozen=True, slots=True)
class Windows:
    """Of a problem whose last node reads the outputs, and runs last."""

    pivots: tuple[int, ...]
    low: tuple[int, ...]  # for each node, the first group in which it can first run
    high: tuple[int, ...]  # and the last

    def is_sure(self, node: int) -> bool:
        """Whether the node's first compute has just one group; such a node can be a further pivot."""
        return self.low[node] == self.high[node]


@dataclass(frozen=True, slots=True)
class GroupedProgram:
    """The relaxation of one problem for given windows, with the columns of its program."""

    problem: Problem  # with a last node that reads the outputs
    writer: Sequence[int]
    windows: Windows
    free: frozenset[int]  # values that no row is about
    replaceable: dict[int, int]  # value -> the one node that reads it
    blocks: Blocks
    stuck: list[int]  # values that nobody reads and the runtime never frees
    beside: Mapping[int, frozenset[int]]  # node -> values that do not count while it runs
    program: Program
    held: list[dict[int, int]]  # for each group, value -> column of S at its beginning; held by none that is not there
    runs: list[dict[int, int]]  # for each group, node -> column of C, or SURELY; runs in none that is not there
    across: list[dict[int, int]]  # for each group, value -> column of H
    joint: list[dict[int, tuple[int, int]]]  # for each group, root -> column of B, and the bytes that 1 stands for

    @property
    def groups(self) -> range:
        return range(len(self.held))

    def held_at_end(self, group: int) -> dict[int, int]:
        """The columns of S at the beginning of the next group; none where there is none."""
        return self.held[group + 1] if group + 1 < len(self.held) else {}

    def needed_at_end(self, group: int) -> tuple[int, ...]:
        """What the last first compute of a group reads."""
        pivots = self.windows.pivots
        return self.problem.nodes[pivots[group] if group < len(pivots) else -1].reads


def start_program(
    problem: Problem,
    windows: Windows,
    free: frozenset[int],
    scale: float,
    beside: Mapping[int, frozenset[int]] | None = None,
) -> GroupedProgram:
    """The columns of S and C, and no rows yet; costs are divided by `scale`."""
    count = len(windows.pivots) + 1
    held, runs, across = ([dict[int, int]() for _ in range(count)] for _ in range(3))
    joint: list[dict[int, tuple[int, int]]] = [{} for _ in range(count)]
    beside = beside or {}
    uncounted, blocks = set[int]().union(*beside.values()), Blocks(problem)
    passing = replaceable_values(problem, free)
    replaceable = {value: reader for value, reader in passing.items() if value not in uncounted}
    grouped = GroupedProgram(
        problem=problem,
        writer=problem.writers(),
        windows=windows,
        free=free,
        replaceable=replaceable,
        blocks=blocks,
        stuck=_list_stuck(blocks),
        beside=beside,
        program=Program(),
        held=held,
        runs=runs,
        across=across,
        joint=joint,
    )
    _add_columns(grouped, scale)
    return grouped


def _add_columns(grouped: GroupedProgram, scale: float) -> None:
    """Only what can be of use: first computes, and what something later, or in the same group, can be rebuilt from."""
    nodes, low, high = grouped.problem.nodes, grouped.windows.low, grouped.windows.high
    variable = grouped.program.variable
    later: set[int] = set()  # values of use in a later group
    for group in reversed(grouped.groups):
        useful: set[int] = set()
        for index in range(len(nodes) - 1, -1, -1):
            node = nodes[index]
            if group < low[index]:
                continue
            if group > high[index] and (node.once or not any(v in useful or v in later for v in node.writes)):
                continue
            is_sure = low[index] == group == high[index]
            grouped.runs[group][index] = SURELY if is_sure else variable(node.cost / scale)
            useful.update(value for value in node.reads if value not in grouped.free)
        later = {value for value in later | useful if low[grouped.writer[value]] < group}
        for value in sorted(later):
            if value not in grouped.replaceable or high[grouped.replaceable[value]] >= group:
                grouped.held[group][value] = variable()


def _require(grouped: GroupedProgram, columns: Iterable[int | None], by: int = SURELY) -> None:
    """One of the columns is 1 if column `by` is."""
    there = [column for column in columns if column is not None]
    if SURELY in there:
        return
    if by == SURELY:
        grouped.program.row(there, [1.0] * len(there), low=1.0)
    else:
        grouped.program.row([*there, by], [1.0] * len(there) + [-1.0], low=0.0)


def add_availability(grouped: GroupedProgram, group: int) -> None:
    """(1), and the first half of (2)."""
    nodes, held, runs = grouped.problem.nodes, grouped.held[group], grouped.runs[group]
    certain = {v for node, column in runs.items() if column == SURELY for v in nodes[node].reads} - grouped.free
    for value in sorted(certain):
        _require(grouped, (held.get(value), runs.get(grouped.writer[value])))
    for node, column in runs.items():
        for value in dict.fromkeys(nodes[node].reads) if column != SURELY else ():
            if value not in grouped.free and value not in certain:
                _require(grouped, (held.get(value), runs.get(grouped.writer[value])), column)
    for value, column in grouped.held_at_end(group).items():
        if value not in certain:
            _require(grouped, (held.get(value), runs.get(grouped.writer[value])), column)


def add_windows(grouped: GroupedProgram) -> None:
    """(0), and the second half of (2)."""
    runs, windows = grouped.runs, grouped.windows
    for index, node in enumerate(grouped.problem.nodes):
        low, high = windows.low[index], windows.high[index]
        if low == high:
            continue
        columns = [runs[group][index] for group in range(low, high + 1)]
        grouped.program.row(columns, [1.0] * len(columns), low=1.0, high=1.0 if node.once else INFINITY)
        for value in dict.fromkeys(node.reads):
            if value in grouped.free:
                continue
            made = [runs[group].get(grouped.writer[value]) for group in range(low, high + 1)]
            for group in range(low + 1, high + 1):
                _require(grouped, (grouped.held[group].get(value), *made[group - low :], *columns[: group - low]))


def add_memory(grouped: GroupedProgram, group: int, budget: int) -> None:
    """(3), when the pivot before the group first runs."""
    problem, blocks, pivot = grouped.problem, grouped.blocks, grouped.windows.pivots[group - 1]
    node = problem.nodes[pivot]
    room = budget - problem.resident - node.workspace - blocks.held(frozenset(node.reads))
    terms: dict[int, int] = {}  # column -> bytes
    for root, values in _find_elsewhere(grouped, grouped.held[group], pivot).items():
        column = grouped.held[group][values[0]] if len(values) == 1 else _add_block(grouped, group, root, values)
        terms[column] = max(blocks.floor[value] for value in values)
    for value in node.writes:
        fixed, depending = _measure_write(grouped, group, value)
        room -= fixed
        for column, size in depending.items():
            terms[column] = terms.get(column, 0) + size
    _add_knapsack(grouped.program, terms, room - _sum_stuck(grouped, group, pivot, but=pivot))


def _find_elsewhere(grouped: GroupedProgram, values: Iterable[int], index: int) -> dict[int, list[int]]:
    """Of these values, those that count beside a node and are in blocks apart from all that it touches, by their
    root."""
    blocks, node = grouped.blocks, grouped.problem.nodes[index]
    touched = {blocks.root[value] for value in (*node.reads, *grouped.beside.get(index, ()))}
    found: dict[int, list[int]] = {}
    for value in values:
        root = blocks.root[value]
        if root != RESIDENT and root not in touched and value not in node.writes and blocks.floor[value]:
            found.setdefault(root, []).append(value)
    return found


def _add_block(grouped: GroupedProgram, group: int, root: int, values: Sequence[int]) -> int:
    """The column of B."""
    floor = grouped.blocks.floor
    most = max(floor[value] for value in values)
    column = grouped.program.variable(whole=False)
    grouped.joint[group][root] = column, most
    for value in values:
        grouped.program.row([column, grouped.held[group][value]], [1.0, -floor[value] / most], low=0.0)
    return column


def _sum_stuck(grouped: GroupedProgram, group: int, index: int, but: int = -1) -> int:
    """Bytes that nobody frees, of nodes that have surely run before the group; those of node `but` do not count, nor
    what does not count beside node `index`."""
    high, writer, sizes, beside = grouped.windows.high, grouped.writer, grouped.problem.sizes, grouped.beside
    stuck = [value for value in grouped.stuck if high[writer[value]] < group and writer[value] != but]
    return sum(sizes[value] for value in stuck if value not in beside.get(index, ()))


def _list_stuck(blocks: Blocks) -> list[int]:
    problem = blocks.problem
    if not problem.unread_stay:
        return []
    read = {value for node in problem.nodes for value in node.reads} | problem.optional
    return [v for node in problem.nodes for v in node.writes if v not in read and blocks.owns(node, v)]


def _measure_write(grouped: GroupedProgram, group: int, value: int) -> tuple[int, dict[int, int]]:
    """The bytes that a write of the pivot surely takes, and those that depend on what is held or runs again."""
    problem, size, blocks, pivot = grouped.problem, grouped.problem.sizes[value], grouped.blocks, grouped.writer[value]
    node, held = problem.nodes[pivot], grouped.held[group]
    if value in problem.optional:
        return (0, {held[value]: size}) if value in held and blocks.owns(node, value) else (0, {})
    if blocks.owns(node, value):
        return size, {}
    if value in grouped.free:
        return 0, {}
    if value in problem.outputs:  # its last copy has memory of its own
        return size, dict.fromkeys((runs[pivot] for runs in grouped.runs[group:] if pivot in runs), -size)
    over = {held.get(read) for read in blocks.places(node, value)}
    if len(over) == 1:
        (column,) = over
        return 0, ({} if column is None else {column: size})
    return 0, {}


def add_peak(grouped: GroupedProgram, group: int, index: int, budget: int) -> None:
    """(4), whenever a node runs in a group."""
    problem, node, blocks, runs = grouped.problem, grouped.problem.nodes[index], grouped.blocks, grouped.runs[group]
    own = blocks.held(frozenset(node.reads)) + sum(problem.sizes[write] for write in blocks.taken(node))
    taken, terms = node.workspace + own, dict[int, int]()
    room = budget - problem.resident - _sum_stuck(grouped, group, index)
    if runs[index] == SURELY:
        room -= taken
    else:
        terms[runs[index]] = taken
    last, later = grouped.needed_at_end(group), grouped.held_at_end(group)
    stay = [v for v in grouped.held[group] if (v in last or v in later) and runs.get(grouped.writer[v]) != SURELY]
    for values in _find_elsewhere(grouped, stay, index).values():
        value = max(values, key=blocks.floor.__getitem__)
        terms[_add_across(grouped, group, value)] = blocks.floor[value]
    _add_knapsack(grouped.program, terms, room)


def _add_across(grouped: GroupedProgram, group: int, value: int) -> int:
    """The column of H."""
    across = grouped.across[group]
    if value not in across:
        column = across[value] = grouped.program.variable(whole=False)
        columns, signs, low = [column], [1.0], 1.0
        if value not in grouped.needed_at_end(group):
            columns, signs, low = [column, grouped.held[group + 1][value]], [1.0, -1.0], 0.0
        made = grouped.runs[group].get(grouped.writer[value])
        if made is not None:
            columns, signs = [*columns, made], [*signs, 1.0]
        grouped.program.row(columns, signs, low=low)
    return across[value]


def _add_knapsack(program: Program, terms: dict[int, int], room: int) -> None:
    """In exact integers, divided by what they have in common."""
    terms = {column: size for column, size in terms.items() if size}
    if sum(size for size in terms.values() if size > 0) <= room:
        return
    common = gcd(*terms.values()) if terms else 1
    program.row(list(terms), [size // common for size in terms.values()], high=room // common)
