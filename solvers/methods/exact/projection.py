"""Converts an order to an answer of the relaxation.

Invariant: the answer of a legal order whose first computes lie in the windows satisfies every row.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.methods.exact.grouped import SURELY, GroupedProgram
from solvers.methods.exact.replaceable import advance


def project(grouped: GroupedProgram, order: Sequence[int]) -> list[float]:
    """The (C, S, B, H) of an order, which does not name the last node."""
    order = advance(grouped.problem, grouped.replaceable, order)
    solution = [0.0] * len(grouped.program.costs)
    _project_computes(grouped, order, solution)
    _project_blocks(grouped, solution)
    _project_across(grouped, solution)
    return solution


def _project_computes(grouped: GroupedProgram, order: Sequence[int], solution: list[float]) -> None:
    """C and S, backwards from what the end reads."""
    nodes, pivots = grouped.problem.nodes, grouped.windows.pivots
    first: dict[int, int] = {}
    for step, index in enumerate(order):
        first.setdefault(index, step)
    group = len(pivots)
    needed = set(nodes[-1].reads)
    for step in range(len(order) - 1, -1, -1):
        index = order[step]
        if group > 0 and first[pivots[group - 1]] == step:
            for value in needed & grouped.held[group].keys():
                solution[grouped.held[group][value]] = 1.0
            group -= 1
        if grouped.runs[group].get(index, SURELY) != SURELY:
            solution[grouped.runs[group][index]] = 1.0
        needed.difference_update(nodes[index].writes)
        needed.update(nodes[index].reads)


def _project_blocks(grouped: GroupedProgram, solution: list[float]) -> None:
    """B: the largest share that a held value has of the bytes that the value 1 stands for."""
    root, floor = grouped.blocks.root, grouped.blocks.floor
    for group, blocks in enumerate(grouped.joint):
        for value, column in grouped.held[group].items():
            if solution[column] > 0 and root[value] in blocks:
                block, most = blocks[root[value]]
                solution[block] = max(solution[block], min(1.0, floor[value] / most))


def _project_across(grouped: GroupedProgram, solution: list[float]) -> None:
    """H: a value that is held as the group begins, is not made in it, and is held at its end or read by its last first
    compute."""
    for group, columns in enumerate(grouped.across):
        last = grouped.needed_at_end(group)
        for value, column in columns.items():
            is_held_to_end = value in last or solution[grouped.held[group + 1][value]] > 0
            made = grouped.runs[group].get(grouped.writer[value])
            is_made = made is not None and solution[made] > 0
            if is_held_to_end and solution[grouped.held[group][value]] > 0 and not is_made:
                solution[column] = 1.0
