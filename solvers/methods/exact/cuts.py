"""Cuts in time: a relaxation that looks at memory only at a few boundaries, and so stays small.

Boundaries tau_1 < ... < tau_G part the first computes into groups; group g holds those after tau_g up to tau_(g+1), the
last group an op that reads the outputs. For what is first computed before group g: S(g, v) says that value v is held
from before the first compute of tau_g to after it, R(g, j) that node j runs again at least once within group g.

    minimise   cost of every node once + sum of cost(j) R(g, j), subject to
    (1)  S(g+1, v) <= S(g, v) + R(g, writer(v))
    (2)  S(g, v) + R(g, writer(v)) >= 1 for each v read by a first compute of group g, >= R(g, j) if read by j
    (3)  when tau runs: its reads, its writes, its workspace and all S across it fit
    (4)  where a recomputation was seen not to fit: if R(g, j), then what j reads and writes, its workspace and every
         other value that is held throughout group g, which H(g, v) >= S(g+1, v) - R(g, writer(v)) says, fit; what the
         last first compute of the group reads counts as S(g+1, v) = 1

Values that may lie in one block count once: B(g, r) >= S(g, v) for each of those whose root is r.

Invariant: every schedule with this order of first computes, however often and wherever it recomputes, gives an (S, R)
at no greater cost (`project`), so that the minimum is a bound for all of them. In-place writes count as if they were
always possible, optional writes as if they were left out unless held; values in `free` take no room at all, and passing
ones (`passing.py`) have no S once the one node that reads them has first run.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from solvers.methods.exact.replaceable import advance, replaceable_values
from solvers.methods.exact.tracing import SURELY, Grouped
from solvers.orders.blocks import Blocks
from solvers.problem import RESIDENT, Node, Problem
from solvers.scip import Program


@dataclass(frozen=True, slots=True)
class Cuts:
    """The relaxation of one problem at given boundaries."""

    problem: Problem  # with a last node that reads the outputs
    writer: list[int]
    taus: tuple[int, ...]
    groups: tuple[range, ...]
    free: frozenset[int]
    program: Program
    keep: list[dict[int, int]]  # for each group, value -> column of S
    again: list[dict[int, int]]  # for each group, node -> column of R
    across: list[dict[int, int]]  # for each group, value -> column of H
    passing: dict[int, int]  # values without S after the first compute of the one node that reads them
    blocks: Blocks
    joint: list[dict[int, int]]  # for each group, root -> column of B


def grouped(cuts: Cuts) -> Grouped:
    """What first runs in a group surely does."""
    runs = [{**again, **dict.fromkeys(first, SURELY)} for again, first in zip(cuts.again, cuts.groups, strict=True)]
    return Grouped(cuts.problem, cuts.writer, cuts.free, cuts.program, cuts.keep, runs)


def small_values(problem: Problem, budget: int, share: float) -> frozenset[int]:
    """Values, smallest first, that together take at most this share of the budget."""
    found: set[int] = set()
    room = share * budget
    for value in sorted(range(len(problem.sizes)), key=problem.sizes.__getitem__):
        room -= problem.sizes[value]
        if room < 0:
            break
        found.add(value)
    return frozenset(found)


def build(
    problem: Problem,
    budget: int,
    taus: Sequence[int],
    free: frozenset[int],
    scale: float,
    repeats: Iterable[tuple[int, int]] = (),
) -> Cuts:
    """The relaxation at these boundaries; costs are divided by `scale`.

    `repeats`: (stage, node) of the recomputations to which (4) applies.
    """
    edges = (-1, *sorted(taus), len(problem.nodes) - 1)
    groups = tuple(range(low + 1, high + 1) for low, high in pairwise(edges))
    keep, again, across, joint = (_columns(groups) for _ in range(4))
    passing = replaceable_values(problem, free)
    taus, writer, blocks = edges[1:-1], problem.writers(), Blocks(problem)
    cuts = Cuts(problem, writer, taus, groups, free, Program(), keep, again, across, passing, blocks, joint)
    _add_variables(cuts, scale)
    for g in range(1, len(groups)):
        _add_availability(cuts, g)
        _add_memory(cuts, g, budget)
    for g, node in sorted({(bisect_left(cuts.taus, stage), node) for stage, node in repeats}):
        if node in cuts.again[g] and node not in cuts.passing.values():
            _add_repeat(cuts, g, node, budget)
    return cuts


def _columns(groups: Sequence[range]) -> list[dict[int, int]]:
    return [{} for _ in groups]


def _add_variables(cuts: Cuts, scale: float) -> None:
    """Only what can be of use: a value read later, or through which something of use can be rebuilt."""
    nodes = cuts.problem.nodes
    held: set[int] = set()  # values of use in a later group
    for g in range(len(cuts.groups) - 1, 0, -1):
        before = cuts.groups[g].start
        useful = _certain(cuts, g)
        for index in range(before - 1, -1, -1):
            node = nodes[index]
            if node.once or not any(write in useful or write in held for write in node.writes):
                continue
            cuts.again[g][index] = cuts.program.variable(node.cost / scale)
            useful.update(value for value in node.reads if value not in cuts.free)
        held = {value for value in held | useful if cuts.writer[value] < before}
        for value in sorted(held):
            if cuts.passing.get(value, before) >= before:
                cuts.keep[g][value] = cuts.program.variable()


def _certain(cuts: Cuts, g: int) -> set[int]:
    """What the first computes of a group read from before the group."""
    group = cuts.groups[g]
    reads = {value for index in group for value in cuts.problem.nodes[index].reads}
    return {value for value in reads if value not in cuts.free and cuts.writer[value] < group.start}


def _add_availability(cuts: Cuts, g: int) -> None:
    """(1) and (2)."""

    def need(value: int, column: int | None) -> None:
        found = (cuts.keep[g].get(value), cuts.again[g].get(cuts.writer[value]))
        there = [column for column in found if column is not None]
        if column is None:
            cuts.program.row(there, [1.0] * len(there), low=1.0)
        else:
            cuts.program.row([*there, column], [1.0] * len(there) + [-1.0], low=0.0)

    certain = _certain(cuts, g)
    for value in sorted(certain):
        need(value, None)
    for index, column in cuts.again[g].items():
        for value in dict.fromkeys(cuts.problem.nodes[index].reads):
            if value not in cuts.free and value not in certain:
                need(value, column)
    if g + 1 < len(cuts.groups):
        for value, column in cuts.keep[g + 1].items():
            if cuts.writer[value] < cuts.groups[g].start and value not in certain:
                need(value, column)


def _add_memory(cuts: Cuts, g: int, budget: int) -> None:
    """(3), when the last node of group g - 1 first runs."""
    problem, tau = cuts.problem, cuts.taus[g - 1]
    node = problem.nodes[tau]
    room = budget - problem.resident - node.workspace - cuts.blocks.held(set(node.reads))
    terms: dict[int, int] = {}  # column -> bytes
    for root, values in _elsewhere(cuts, cuts.keep[g], node).items():
        column = cuts.keep[g][values[0]] if len(values) == 1 else _jointly(cuts, g, root, values)
        terms[column] = max(cuts.blocks.floor[value] for value in values)
    for value in node.writes:
        fixed, over = _write_room(cuts, g, tau, value)
        room -= fixed
        for column, size in over.items():
            terms[column] = terms.get(column, 0) + size
    room -= sum(problem.sizes[value] for value in stuck_values(cuts.blocks) if cuts.writer[value] < tau)
    add_knapsack(cuts.program, terms, room)


def _elsewhere(cuts: Cuts, values: Iterable[int], node: Node) -> dict[int, list[int]]:
    """Of these values, those in blocks apart from all that the node touches, by their root."""
    touched = {cuts.blocks.root[value] for value in node.reads}
    found: dict[int, list[int]] = {}
    for value in values:
        root = cuts.blocks.root[value]
        if root != RESIDENT and root not in touched and value not in node.writes and cuts.blocks.floor[value]:
            found.setdefault(root, []).append(value)
    return found


def _jointly(cuts: Cuts, g: int, root: int, values: Sequence[int]) -> int:
    """The column of B."""
    floor = cuts.blocks.floor
    most = max(floor[value] for value in values)
    column = cuts.joint[g][root] = cuts.program.variable(whole=False)
    for value in values:
        cuts.program.row([column, cuts.keep[g][value]], [1.0, -floor[value] / most], low=0.0)
    return column


def _add_repeat(cuts: Cuts, g: int, index: int, budget: int) -> None:
    """(4), whenever a node runs again in a group."""
    problem, node, blocks = cuts.problem, cuts.problem.nodes[index], cuts.blocks
    stuck = sum(problem.sizes[value] for value in stuck_values(blocks) if cuts.writer[value] < cuts.groups[g].start)
    own = blocks.held(set(node.reads)) + sum(problem.sizes[write] for write in blocks.taken(node))
    terms = {cuts.again[g][index]: node.workspace + own}
    last = problem.nodes[cuts.groups[g][-1]]
    stay = [v for v in cuts.keep[g] if v in last.reads or (g + 1 < len(cuts.groups) and v in cuts.keep[g + 1])]
    for values in _elsewhere(cuts, stay, node).values():
        value = max(values, key=blocks.floor.__getitem__)
        terms[_held_across(cuts, g, value, last.reads)] = blocks.floor[value]
    add_knapsack(cuts.program, terms, budget - problem.resident - stuck)


def _held_across(cuts: Cuts, g: int, value: int, certain: Sequence[int]) -> int:
    """The column of H."""
    if value not in cuts.across[g]:
        column = cuts.across[g][value] = cuts.program.variable(whole=False)
        columns, signs, low = [column], [1.0], 1.0
        if value not in certain:
            columns, signs, low = [column, cuts.keep[g + 1][value]], [1.0, -1.0], 0.0
        again = cuts.again[g].get(cuts.writer[value])
        if again is not None:
            columns, signs = [*columns, again], [*signs, 1.0]
        cuts.program.row(columns, signs, low=low)
    return cuts.across[g][value]


def _write_room(cuts: Cuts, g: int, tau: int, value: int) -> tuple[int, dict[int, int]]:
    """The bytes that a write of tau surely takes, and those that depend on S or R."""
    problem, size, blocks = cuts.problem, cuts.problem.sizes[value], cuts.blocks
    node = problem.nodes[tau]
    kept = cuts.keep[g].get(value)
    if value in problem.optional:
        return (0, {}) if kept is None or not blocks.owns(node, value) else (0, {kept: size})
    if blocks.owns(node, value):
        return size, {}
    if value in cuts.free:
        return 0, {}
    if value in problem.outputs:  # its last copy has memory of its own
        again = [cuts.again[h][tau] for h in range(g, len(cuts.groups)) if tau in cuts.again[h]]
        return size, dict.fromkeys(again, -size)
    over = {cuts.keep[g].get(read) for read in blocks.places(node, value)}
    if len(over) == 1:
        (column,) = over
        return 0, ({} if column is None else {column: size})
    return 0, {}


def stuck_values(blocks: Blocks) -> list[int]:
    """Values that nobody reads and the runtime never frees."""
    problem = blocks.problem
    if not problem.unread_stay:
        return []
    read = {value for node in problem.nodes for value in node.reads} | problem.optional
    return [v for node in problem.nodes for v in node.writes if v not in read and blocks.owns(node, v)]


def add_knapsack(program: Program, terms: dict[int, int], room: int) -> None:
    """In exact integers, divided by what they have in common."""
    terms = {column: size for column, size in terms.items() if size}
    if sum(size for size in terms.values() if size > 0) <= room:
        return
    common = gcd(*terms.values()) if terms else 1
    program.row(list(terms), [size // common for size in terms.values()], high=room // common)


def project(cuts: Cuts, order: Sequence[int]) -> list[float]:
    """The (S, R) of an order."""
    nodes = cuts.problem.nodes
    order = advance(cuts.problem, cuts.passing, order)
    solution = [0.0] * len(cuts.program.costs)
    first: dict[int, int] = {}
    for step, index in enumerate(order):
        first.setdefault(index, step)
    g = len(cuts.groups) - 1
    needed = set(nodes[-1].reads)
    for step in range(len(order) - 1, -1, -1):
        index = order[step]
        if g > 0 and first[cuts.taus[g - 1]] == step:
            for value in needed & cuts.keep[g].keys():
                solution[cuts.keep[g][value]] = 1.0
            g -= 1
        if first[index] != step and index in cuts.again[g]:
            solution[cuts.again[g][index]] = 1.0
        needed.difference_update(nodes[index].writes)
        needed.update(nodes[index].reads)
    for g, columns in enumerate(cuts.across):
        last = nodes[cuts.groups[g][-1]]
        for value, column in columns.items():
            ends = value in last.reads or solution[cuts.keep[g + 1][value]] > 0
            again = cuts.again[g].get(cuts.writer[value])
            if ends and solution[cuts.keep[g][value]] > 0 and (again is None or solution[again] == 0):
                solution[column] = 1.0
    for g, columns in enumerate(cuts.joint):
        for value, column in cuts.keep[g].items():
            if solution[column] > 0 and cuts.blocks.root[value] in columns:
                solution[columns[cuts.blocks.root[value]]] = 1.0
    return solution


def kept(cuts: Cuts, solution: Sequence[float]) -> list[set[int]]:
    """For each group, the values that are held into it."""
    return [{value for value, column in columns.items() if solution[column] > 0.5} for columns in cuts.keep]


def expand(cuts: Cuts, solution: Sequence[float]) -> list[int]:
    """An order that keeps just what S keeps, and recomputes as late as possible within each group.

    What cannot be made again is kept as well: an S that was rounded may do without it.
    """
    nodes, held = cuts.problem.nodes, kept(cuts, solution)
    once = {value for node in nodes if node.once for value in node.writes}
    order: list[int] = []
    live: set[int] = set()

    def ensure(values: Sequence[int]) -> None:
        missing: set[int] = set()
        stack = [value for value in values if value not in live]
        while stack:
            index = cuts.writer[stack.pop()]
            if index not in missing:
                missing.add(index)
                stack += [value for value in nodes[index].reads if value not in live]
        for index in sorted(missing):
            order.append(index)
            live.update(nodes[index].writes)

    for g, group in enumerate(cuts.groups):
        if g:
            live = {value for value in live if value in held[g] or value in cuts.free or value in once}
        for index in group:
            ensure(nodes[index].reads)
            order.append(index)
            live.update(nodes[index].writes)
        if g + 1 < len(cuts.groups):
            ensure(sorted(held[g + 1]))
    return order[:-1] if order and order[-1] == len(nodes) - 1 else order
