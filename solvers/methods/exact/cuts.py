"""Cuts in time: the relaxation for one order of first computes, and the way from its answers to orders.

Memory is looked at only at a few boundaries, the first computes of the pivots, so that the program stays small. As the
order of first computes is given, each window is one group: `grouped.py` has the rows, in which C(g, j) of a node that
first runs in group g is surely 1, and that of an earlier node says that it runs again.

Invariant: the minimum is a bound for every schedule with this order of first computes, wherever it recomputes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

from solvers.methods.exact.grouped import (
    SURELY,
    GroupedProgram,
    Windows,
    add_availability,
    add_memory,
    add_peak,
    start_program,
)
from solvers.problem import Problem


def select_small_values(problem: Problem, budget: int, share: float) -> frozenset[int]:
    """Values, smallest first, that together take at most this share of the budget."""
    found: set[int] = set()
    room = share * budget
    for value in sorted(range(len(problem.sizes)), key=problem.sizes.__getitem__):
        room -= problem.sizes[value]
        if room < 0:
            break
        found.add(value)
    return frozenset(found)


def build_cuts(
    problem: Problem,
    budget: int,
    boundaries: Sequence[int],
    free: frozenset[int],
    scale: float,
    repeats: Iterable[tuple[int, int]] = (),
) -> GroupedProgram:
    """The relaxation at these boundaries; costs are divided by `scale`.

    `repeats`: (stage, node) of the recomputations that are to fit beside what stays: row (4).
    """
    pivots = tuple(sorted(boundaries))
    group_of = tuple(bisect_left(pivots, index) for index in range(len(problem.nodes)))
    cuts = start_program(problem, Windows(pivots, group_of, group_of), free, scale)
    for group in cuts.groups[1:]:
        add_availability(cuts, group)
        add_memory(cuts, group, budget)
    readers = set(cuts.replaceable.values())
    for group, node in sorted({(bisect_left(pivots, stage), node) for stage, node in repeats}):
        if cuts.runs[group].get(node, SURELY) != SURELY and node not in readers:
            add_peak(cuts, group, node, budget)
    return cuts


def list_first_computes(cuts: GroupedProgram) -> list[range]:
    """For each group, the nodes that first run in it."""
    edges = (-1, *cuts.windows.pivots, len(cuts.problem.nodes) - 1)
    return [range(low + 1, high + 1) for low, high in pairwise(edges)]


def list_held(cuts: GroupedProgram, solution: Sequence[float]) -> list[set[int]]:
    """For each group, the values that are held into it."""
    return [{value for value, column in columns.items() if solution[column] > 0.5} for columns in cuts.held]


def expand_cuts(cuts: GroupedProgram, solution: Sequence[float]) -> list[int]:
    """An order that keeps just what S keeps, and recomputes as late as possible within each group.

    What cannot be made again is kept as well: an S that was rounded may do without it.
    """
    nodes, held = cuts.problem.nodes, list_held(cuts, solution)
    once = {value for node in nodes if node.once for value in node.writes}
    groups = list_first_computes(cuts)
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

    for number, group in enumerate(groups):
        if number:
            live = {value for value in live if value in held[number] or value in cuts.free or value in once}
        for index in group:
            ensure(nodes[index].reads)
            order.append(index)
            live.update(nodes[index].writes)
        if number + 1 < len(groups):
            ensure(sorted(held[number + 1]))
    return order[:-1] if order and order[-1] == len(nodes) - 1 else order
