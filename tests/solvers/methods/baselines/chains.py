"""Chains for hand-worked cases."""

from __future__ import annotations

from collections.abc import Sequence

from solvers.problem import Node, Problem


def reversed_chain(count: int) -> Problem:
    """The last result turns into a gradient, and each op's gradient needs only what the op reads, as in Griewank's and
    Walther's model: count + 1 reversals, all units.
    """
    forward = [Node(1, (i - 1,) if i else (), (i,)) for i in range(count)]
    backward = [Node(1, (count - 1,), (count,), backward=True)]
    for i in reversed(range(count)):
        seen = (*((i - 1,) if i else ()), 2 * count - 1 - i)
        backward.append(Node(1, seen, (2 * count - i,), backward=True))
    return Problem((*forward, *backward), (1,) * (2 * count + 1), ())


def training_chain(sizes: Sequence[int], costs: Sequence[int]) -> Problem:
    """Op i's gradient needs op i's read and result, and the gradient after it."""
    count = len(sizes)
    forward = [Node(costs[i], (i - 1,) if i else (), (i,)) for i in range(count)]
    backward = []
    for i in reversed(range(count)):
        seen = {i, *((i - 1,) if i else ()), *((2 * count - 2 - i,) if i < count - 1 else ())}
        backward.append(Node(2 * costs[i], tuple(sorted(seen)), (2 * count - 1 - i,), backward=True))
    return Problem((*forward, *backward), (*sizes, *reversed(sizes)), ())
