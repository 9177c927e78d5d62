"""Puts the computes of an order back beside what reads them, as the model's own order has them.

A search moves ops about where that costs nothing. Lifetimes then begin and end in disorder, and a block that is laid
out as they come is far higher than what is live at once. In the tidy order most end in the reverse of the order in
which they began.

Invariant: a tidy order has the same computes, and is legal if the order was. It may hold more at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from solvers.problem import Problem

Reads = list[list[int]]  # for each compute of an order, the computes whose results it reads


def tidied(problem: Problem, order: Sequence[int]) -> tuple[int, ...]:
    """First computes in the problem's own order as far as those allow that they read, and each before its first
    reader."""
    reads, firsts = _reads_of(problem, order)
    done = [False] * len(order)
    found: list[int] = []
    for first in sorted(firsts, key=lambda step: order[step]):
        stack = [(first, False)]
        while stack:
            step, leaving = stack.pop()
            if leaving:
                found.append(order[step])
            elif not done[step]:
                done[step] = True
                stack.append((step, True))
                stack.extend((read, False) for read in sorted(reads[step], reverse=True) if not done[read])
    return tuple(found) + tuple(node for step, node in enumerate(order) if not done[step])


def _reads_of(problem: Problem, order: Sequence[int]) -> tuple[Reads, list[int]]:
    """The reads of each compute, and the computes that are the first of their node."""
    newest: dict[int, int] = {}
    seen: set[int] = set()
    reads: Reads = []
    firsts: list[int] = []
    for step, number in enumerate(order):
        node = problem.nodes[number]
        reads.append([newest[value] for value in node.reads])
        newest.update((value, step) for value in node.writes)
        if number not in seen:
            seen.add(number)
            firsts.append(step)
    return reads, firsts
