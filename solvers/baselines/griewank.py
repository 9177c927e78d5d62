"""`griewank`: binomial checkpointing of a chain, optimal for unit costs and unit sizes. Griewank and Walther, Algorithm
799: Revolve (ACM TOMS 26, 2000); the log n strategy of Griewank (1992) is this with log n snapshots.

Symbols: c snapshots may be held at once; beta(c, r) = binomial(c + r, c) is the longest chain that they can reverse
with each op run at most r times before its own reversal. Op i turns state i into state i + 1, and state 0 is the input,
which is always there; a snapshot of state i + 1 is the result of op i. c is swept.
"""

from __future__ import annotations

from math import comb

import numpy as np

from solvers.baselines.chen_sqrt import ONLY_CHAINS
from solvers.baselines.forward import forward_nodes, is_chain
from solvers.baselines.from_checkpoints import Kept, cheapest_order, nothing_kept
from solvers.baselines.sweep import cannot, over_knob
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits, snapshots: int | None = None) -> Result:
    """`snapshots`: c, to have it fixed."""
    if not is_chain(problem):
        return cannot(problem, ONLY_CHAINS)
    if snapshots is not None and snapshots < 0:
        raise ValueError(f"snapshots cannot be negative: {snapshots}")
    length = len(forward_nodes(problem))
    knobs = _settings(length) if snapshots is None else [min(snapshots, length)]
    return over_knob(problem, budget, limits, knobs, lambda count: order_of(problem, count))


def _settings(length: int) -> list[int]:
    """All c of at least log2 n / 2: with fewer, a deep chain's schedule would be quadratically long."""
    return list(range(min(length, length.bit_length() // 2), length + 1))


def order_of(problem: Problem, snapshots: int) -> list[int]:
    return cheapest_order(problem, _kept(problem, snapshot_ranges(len(forward_nodes(problem)), snapshots)))


def snapshot_ranges(length: int, snapshots: int) -> dict[int, int]:
    """state -> end: the state is a snapshot while ops `state` to `end` - 1 are reversed, last first."""
    ranges: dict[int, int] = {}
    waiting = [(0, length, snapshots)]
    while waiting:
        low, high, free = waiting.pop()  # reverse ops low..high - 1; state low is held, `free` snapshots may be added
        while high - low > 1 and free:
            middle = low + split(high - low, free)
            ranges[middle] = high
            waiting.append((middle, high, free - 1))
            high = middle
    return ranges


def split(length: int, snapshots: int) -> int:
    """How far to advance before the next snapshot in a chain of `length` ops.

    With r the least that reverses the chain, any point does that has beta(c, r - 2) <= split <= beta(c, r - 1) and
    beta(c - 1, r - 1) <= length - split <= beta(c - 1, r).
    """
    repeats = 1
    while _beta(snapshots, repeats) < length:
        repeats += 1
    most = min(_beta(snapshots, repeats - 1), length - _beta(snapshots - 1, repeats - 1))
    return max(most, length - _beta(snapshots - 1, repeats), 1)


def _beta(snapshots: int, repeats: int) -> int:
    return comb(snapshots + repeats, snapshots)


def _kept(problem: Problem, ranges: dict[int, int]) -> Kept:
    """A stage begins with the snapshots of the reversal it follows, and with what it shares with the stage before."""
    kept = nothing_kept(problem)
    nodes = forward_nodes(problem)
    follows = np.array(_ops_reversed_before(problem, nodes), dtype=np.int64)
    for state, end in ranges.items():
        held = (follows >= state) & (follows < end)
        for value in problem.nodes[nodes[state - 1]].writes:
            kept[held, value] = True
    at_hand: set[int] = set()
    for stage, node in enumerate(problem.nodes):
        kept[stage, list(at_hand.intersection(node.reads))] = True
        at_hand = {*node.reads, *node.writes}
        if node.backward:
            kept[stage + 1 :, list(node.writes)] = True
    return kept


def _ops_reversed_before(problem: Problem, nodes: list[int]) -> list[int]:
    """For each stage, the op in whose reversal the stage before takes part: the last op that it, or an earlier backward
    stage, reads; before the backward pass, the last op of all.
    """
    place = {value: at for at, index in enumerate(nodes) for value in problem.nodes[index].writes}
    op = len(nodes) - 1
    found: list[int] = []
    for node in problem.nodes:
        found.append(op)
        if node.backward:
            op = min(op, max((place[value] for value in node.reads if value in place), default=op))
    return found
