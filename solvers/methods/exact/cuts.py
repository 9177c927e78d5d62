"""Cuts in time: the relaxation for given windows, and the way from its answers to orders.

Memory is looked at only at a few boundaries, the first computes of the pivots, so that the program stays small;
`grouped.py` has the rows. Where the order of first computes is given, the window of each node is one group.

Invariant: the minimum is a bound for every schedule whose first computes lie in their windows, wherever it recomputes;
`expand_cuts` gives a legal order, which may be over budget.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from solvers.methods.exact.grouped import (
    SURELY,
    GroupedProgram,
    Windows,
    add_availability,
    add_memory,
    add_peak,
    add_windows,
    start_program,
)
from solvers.problem import Problem

SMALL = 0.001  # share of the budget that values may take together which a relaxation does not count


def select_small_values(problem: Problem, budget: int) -> frozenset[int]:
    """Values, smallest first, that a relaxation need not count."""
    found: set[int] = set()
    room = SMALL * budget
    for value in sorted(range(len(problem.sizes)), key=problem.sizes.__getitem__):
        room -= problem.sizes[value]
        if room < 0:
            break
        found.add(value)
    return frozenset(found)


def windows_in_order(problem: Problem, boundaries: Iterable[int]) -> Windows:
    """The windows of schedules that first compute the nodes in the order given."""
    pivots = tuple(sorted(boundaries))
    group_of = tuple(bisect_left(pivots, index) for index in range(len(problem.nodes)))
    return Windows(pivots, group_of, group_of)


def build_cuts(
    problem: Problem,
    budget: int,
    windows: Windows,
    free: frozenset[int],
    scale: float,
    peaks: Iterable[tuple[int, int]] = (),
    beside: Mapping[int, frozenset[int]] | None = None,
) -> GroupedProgram:
    """The relaxation, with costs divided by `scale`. `peaks`: (group, node) that must fit beside what stays, by row
    (4)."""
    cuts = start_program(problem, windows, free, scale, beside)
    for group in cuts.groups:
        add_availability(cuts, group)
        if group:
            add_memory(cuts, group, budget)
    add_windows(cuts)
    readers = set(cuts.replaceable.values())
    for group, node in sorted(set(peaks)):
        column = cuts.runs[group].get(node)
        if column is not None and (column == SURELY or node not in readers):
            add_peak(cuts, group, node, budget)
    return cuts


def list_held(cuts: GroupedProgram, solution: Sequence[float]) -> list[set[int]]:
    """For each group, the values that are held into it."""
    return [{value for value, column in columns.items() if solution[column] > 0.5} for columns in cuts.held]


def expand_cuts(cuts: GroupedProgram, solution: Sequence[float]) -> list[int]:
    """An order that holds just what S holds across each boundary, and recomputes as late as possible in each group.

    What cannot be made again is kept as well: an S that was rounded may do without it.
    """
    nodes, held = cuts.problem.nodes, list_held(cuts, solution)
    once = {value for node in nodes if node.once for value in node.writes}
    order: list[int] = []
    ran: set[int] = set()
    live: set[int] = set()

    def compute(index: int) -> None:
        order.append(index)
        ran.add(index)
        live.update(nodes[index].writes)

    def ensure(values: Iterable[int]) -> None:
        for index in sorted(cuts.problem.makers(values, live, cuts.writer)):
            compute(index)

    ends = (*cuts.windows.pivots, len(nodes) - 1)
    for group, firsts in enumerate(_list_first_computes(cuts, solution)):
        if group:
            live &= held[group] | cuts.free | once
        for index in firsts:
            if index not in ran and index != ends[group]:
                ensure(nodes[index].reads)
                compute(index)
        ensure(nodes[ends[group]].reads)
        compute(ends[group])
        if group + 1 < len(ends):
            ensure(sorted(held[group + 1]))
    return order[:-1]


def _list_first_computes(cuts: GroupedProgram, solution: Sequence[float]) -> list[list[int]]:
    """For each group, the nodes that first run in it."""
    found: list[list[int]] = [[] for _ in cuts.groups]
    for index, (low, high) in enumerate(zip(cuts.windows.low, cuts.windows.high, strict=True)):
        chosen = (group for group in range(low, high) if solution[cuts.runs[group][index]] > 0.5)
        found[next(chosen, high)].append(index)
    return found
