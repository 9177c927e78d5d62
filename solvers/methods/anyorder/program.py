"""The relaxation over all orders: what must be held when each pivot first runs.

For each group g that a node j can run in, C(g, j) says that it does; it is surely 1 where the window of j's first
compute is g alone. S(g, v) says that value v is held from before the first compute of pivot p_g to after it.

    minimise   sum of cost(j) C(g, j), subject to
    (0)  C(g, j) over the groups of j's window >= 1, and = 1 if it may run only once
    (1)  S(g+1, v) <= S(g, v) + C(g, writer(v))
    (2)  C(g, j) <= S(g, v) + C(g, writer(v)) for each v that j reads; and for each boundary g in j's window, either j
         ran before, or v is held across it or made again: S(g, v) + C(h >= g, writer(v)) + C(h < g, j) >= 1
    (3)  when a pivot runs: its reads, its writes, its workspace and all S across it fit
    (4)  where a node was seen not to fit: if C(g, j), then what j reads and writes, its workspace and every other value
         held throughout group g, which H(g, v) >= S(g+1, v) - C(g, writer(v)) says, fit; what the last first compute
         of the group reads counts as S(g+1, v) = 1

Values that may lie in one block count once: B(g, r) >= S(g, v) for each of those whose root is r.
`solvers.methods.exact.cuts` is the case in which every window has one group.

Invariant: every legal order, whatever it computes first and however often it recomputes, gives a (C, S) at no greater
cost (`project`), so that the minimum is a bound for all of them. In-place writes count as if they were always possible,
optional writes as if they were left out unless held; `free` and passing values are as in `cuts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from solvers.methods.anyorder.windows import Windows
from solvers.methods.exact.cuts import add_knapsack, stuck_values
from solvers.methods.exact.replaceable import replaceable_values
from solvers.methods.exact.tracing import SURELY, Grouped
from solvers.orders.blocks import Blocks
from solvers.problem import RESIDENT, Node, Problem
from solvers.scip import INFINITY, Program


@dataclass(frozen=True, slots=True)
class TimedProgram:
    """The relaxation of one problem for given pivots."""

    problem: Problem  # with a last node that reads the outputs
    writer: list[int]
    windows: Windows
    free: frozenset[int]
    passing: dict[int, int]  # values without S once the one node that reads them has surely run
    blocks: Blocks
    stuck: list[int]
    program: Program
    held: list[dict[int, int]]  # for each group, value -> column of S at its beginning
    runs: list[dict[int, int]]  # for each group, node -> column of C, or SURELY
    across: list[dict[int, int]]  # for each group, value -> column of H
    joint: list[dict[int, tuple[int, int]]]  # for each group, root -> column of B, and the bytes that 1 stands for

    def grouped(self) -> Grouped:
        return Grouped(self.problem, self.writer, self.free, self.program, self.held, self.runs)

    def needed_at_end(self, g: int) -> tuple[int, ...]:
        """What the last first compute of a group reads."""
        pivots = self.windows.pivots
        return self.problem.nodes[pivots[g] if g < len(pivots) else -1].reads


def build(
    problem: Problem,
    writer: list[int],
    budget: int,
    windows: Windows,
    free: frozenset[int],
    scale: float,
    peaks: Iterable[tuple[int, int]] = (),
) -> TimedProgram:
    """Costs are divided by `scale`. `peaks`: (group, node) to which (4) applies."""
    many = len(windows.pivots) + 1
    held, runs, across = (_columns(many) for _ in range(3))
    joint: list[dict[int, tuple[int, int]]] = [{} for _ in range(many)]
    passing = replaceable_values(problem, free)
    blocks = Blocks(problem)
    stuck = stuck_values(blocks)
    timed = TimedProgram(problem, writer, windows, free, passing, blocks, stuck, Program(), held, runs, across, joint)
    _add_variables(timed, scale)
    for g in range(many):
        _add_availability(timed, g)
    _add_windows(timed)
    for g in range(1, many):
        _add_memory(timed, g, budget)
    readers = set(passing.values())
    for g, node in sorted(set(peaks)):
        if node in runs[g] and (runs[g][node] == SURELY or node not in readers):
            _add_peak(timed, g, node, budget)
    return timed


def _columns(many: int) -> list[dict[int, int]]:
    return [{} for _ in range(many)]


def _add_variables(timed: TimedProgram, scale: float) -> None:
    """Only what can be of use: first computes, and what something later, or in the same group, can be rebuilt from."""
    nodes, low, high = timed.problem.nodes, timed.windows.low, timed.windows.high
    variable = timed.program.variable
    later: set[int] = set()  # values of use in a later group
    for g in range(len(timed.held) - 1, -1, -1):
        useful: set[int] = set()
        for index in range(len(nodes) - 1, -1, -1):
            node = nodes[index]
            if g < low[index]:
                continue
            if g > high[index] and (node.once or not any(v in useful or v in later for v in node.writes)):
                continue
            timed.runs[g][index] = SURELY if low[index] == g == high[index] else variable(node.cost / scale)
            useful.update(value for value in node.reads if value not in timed.free)
        later = {value for value in later | useful if low[timed.writer[value]] < g}
        for value in sorted(later):
            if value not in timed.passing or high[timed.passing[value]] >= g:
                timed.held[g][value] = variable()


def _at_least(timed: TimedProgram, columns: Iterable[int | None], low: float, less: int | None = None) -> None:
    """The columns' sum is at least `low`, or that of column `less`."""
    there = [column for column in columns if column is not None]
    if SURELY in there:
        return
    if less is not None and less != SURELY:
        timed.program.row([*there, less], [1.0] * len(there) + [-1.0], low=0.0)
    else:
        timed.program.row(there, [1.0] * len(there), low=low)


def _add_availability(timed: TimedProgram, g: int) -> None:
    """(1), and the first half of (2)."""
    held, runs, later = timed.held[g], timed.runs[g], timed.held[g + 1] if g + 1 < len(timed.held) else {}
    certain = {v for node, column in runs.items() if column == SURELY for v in timed.problem.nodes[node].reads}
    certain -= timed.free
    for value in sorted(certain):
        _at_least(timed, (held.get(value), runs.get(timed.writer[value])), 1.0)
    for node, column in runs.items():
        for value in dict.fromkeys(timed.problem.nodes[node].reads) if column != SURELY else ():
            if value not in timed.free and value not in certain:
                _at_least(timed, (held.get(value), runs.get(timed.writer[value])), 1.0, column)
    for value, column in later.items():
        if value not in certain:
            _at_least(timed, (held.get(value), runs.get(timed.writer[value])), 1.0, column)


def _add_windows(timed: TimedProgram) -> None:
    """(0), and the second half of (2)."""
    runs, windows = timed.runs, timed.windows
    for index, node in enumerate(timed.problem.nodes):
        low, high = windows.low[index], windows.high[index]
        if low == high:
            continue
        columns = [runs[g][index] for g in range(low, high + 1)]
        timed.program.row(columns, [1.0] * len(columns), low=1.0, high=1.0 if node.once else INFINITY)
        for value in dict.fromkeys(node.reads):
            if value in timed.free:
                continue
            made = [runs[g].get(timed.writer[value]) for g in range(low, high + 1)]
            for g in range(low + 1, high + 1):
                _at_least(timed, (timed.held[g].get(value), *made[g - low :], *columns[: g - low]), 1.0)


def _add_memory(timed: TimedProgram, g: int, budget: int) -> None:
    """(3), when the pivot before group g first runs."""
    problem, pivot = timed.problem, timed.windows.pivots[g - 1]
    node = problem.nodes[pivot]
    room = budget - problem.resident - node.workspace - timed.blocks.held(frozenset(node.reads))
    terms: dict[int, int] = {}  # column -> bytes
    for root, values in _elsewhere(timed, timed.held[g], node).items():
        column = timed.held[g][values[0]] if len(values) == 1 else _jointly(timed, g, root, values)
        terms[column] = max(timed.blocks.floor[value] for value in values)
    for value in node.writes:
        fixed, over = _write_room(timed, g, pivot, value)
        room -= fixed
        for column, size in over.items():
            terms[column] = terms.get(column, 0) + size
    add_knapsack(timed.program, terms, room - _stuck_before(timed, g))


def _elsewhere(timed: TimedProgram, values: Iterable[int], node: Node) -> dict[int, list[int]]:
    """Of these values, those in blocks apart from all that the node touches, by their root."""
    blocks = timed.blocks
    touched = {blocks.root[value] for value in node.reads}
    found: dict[int, list[int]] = {}
    for value in values:
        root = blocks.root[value]
        if root != RESIDENT and root not in touched and value not in node.writes and blocks.floor[value]:
            found.setdefault(root, []).append(value)
    return found


def _jointly(timed: TimedProgram, g: int, root: int, values: Sequence[int]) -> int:
    """The column of B."""
    floor = timed.blocks.floor
    most = max(floor[value] for value in values)
    column = timed.program.variable(whole=False)
    timed.joint[g][root] = column, most
    for value in values:
        timed.program.row([column, timed.held[g][value]], [1.0, -floor[value] / most], low=0.0)
    return column


def _stuck_before(timed: TimedProgram, g: int) -> int:
    """Bytes that nobody frees, of nodes that have surely run before group g; what the pivot itself writes aside."""
    pivot = timed.windows.pivots[g - 1]
    sources = ((value, timed.writer[value]) for value in timed.stuck)
    return sum(timed.problem.sizes[v] for v, index in sources if timed.windows.high[index] < g and index != pivot)


def _write_room(timed: TimedProgram, g: int, pivot: int, value: int) -> tuple[int, dict[int, int]]:
    """The bytes that a write of a pivot surely takes, and those that depend on what is held or runs again."""
    problem, size, blocks = timed.problem, timed.problem.sizes[value], timed.blocks
    node = problem.nodes[pivot]
    kept = timed.held[g].get(value)
    if value in problem.optional:
        return (0, {}) if kept is None or not blocks.owns(node, value) else (0, {kept: size})
    if blocks.owns(node, value):
        return size, {}
    if value in timed.free:
        return 0, {}
    if value in problem.outputs:  # its last copy has memory of its own
        return size, dict.fromkeys((row[pivot] for row in timed.runs[g:] if pivot in row), -size)
    over = {timed.held[g].get(read) for read in blocks.places(node, value)}
    if len(over) == 1:
        (column,) = over
        return 0, ({} if column is None else {column: size})
    return 0, {}


def _add_peak(timed: TimedProgram, g: int, index: int, budget: int) -> None:
    """(4), whenever a node runs in a group."""
    problem, node, blocks = timed.problem, timed.problem.nodes[index], timed.blocks
    own = blocks.held(frozenset(node.reads)) + sum(problem.sizes[write] for write in blocks.taken(node))
    taken = node.workspace + own
    room = budget - problem.resident - (_stuck_before(timed, g) if g else 0)
    terms: dict[int, int] = {}
    if timed.runs[g][index] == SURELY:
        room -= taken
    else:
        terms[timed.runs[g][index]] = taken
    last, later = timed.needed_at_end(g), timed.held[g + 1] if g + 1 < len(timed.held) else {}
    stay = [v for v in timed.held[g] if (v in last or v in later) and timed.runs[g].get(timed.writer[v]) != SURELY]
    for values in _elsewhere(timed, stay, node).values():
        value = max(values, key=blocks.floor.__getitem__)
        terms[_held_across(timed, g, value)] = blocks.floor[value]
    add_knapsack(timed.program, terms, room)


def _held_across(timed: TimedProgram, g: int, value: int) -> int:
    """The column of H."""
    if value not in timed.across[g]:
        column = timed.across[g][value] = timed.program.variable(whole=False)
        columns, signs, low = [column], [1.0], 1.0
        if value not in timed.needed_at_end(g):
            columns, signs, low = [column, timed.held[g + 1][value]], [1.0, -1.0], 0.0
        made = timed.runs[g].get(timed.writer[value])
        if made is not None:
            columns, signs = [*columns, made], [*signs, 1.0]
        timed.program.row(columns, signs, low=low)
    return timed.across[g][value]
