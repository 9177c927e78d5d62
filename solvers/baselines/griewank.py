"""`griewank`: binomial checkpointing of a chain, optimal for unit costs and unit sizes. Griewank and Walther, Algorithm
799: Revolve (ACM TOMS 26, 2000); the log n strategy of Griewank (1992) is this with log n snapshots.

Symbols: c snapshots may be held at once; beta(c, r) = binomial(c + r, c) is the longest chain that they can reverse
with each op run at most r times before its own reversal. Op i turns state i into state i + 1, and state 0 is the input,
which is always there; a snapshot of state i + 1 is the result of op i. c is swept.
"""

from __future__ import annotations

from math import comb

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
    return cheapest_order(problem, _kept(problem, held_at_reversals(len(forward_nodes(problem)), snapshots)))


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


def held_at_reversals(length: int, snapshots: int) -> list[frozenset[int]]:
    """For each op, the states held as snapshots when it is reversed; state 0 is always there and not counted."""
    held: list[frozenset[int]] = [frozenset()] * length
    waiting = [(0, length, snapshots, frozenset[int]())]
    while waiting:
        low, high, free, states = waiting.pop()
        while high - low > 1 and free:
            middle = low + split(high - low, free)
            waiting.append((middle, high, free - 1, states | {middle}))
            high = middle
        held[low:high] = [states] * (high - low)
    return held


def _kept(problem: Problem, held: list[frozenset[int]]) -> Kept:
    """A backward op takes part in the reversal of the last forward op that it, or one before it, reads.

    A stage begins with the snapshots of the reversal before its own, and with what it shares with the stage before.
    """
    kept = nothing_kept(problem)
    nodes = forward_nodes(problem)
    place = {value: at for at, index in enumerate(nodes) for value in problem.nodes[index].writes}
    op = len(nodes) - 1
    at_hand: set[int] = set()
    results: dict[frozenset[int], list[int]] = {}
    for stage, node in enumerate(problem.nodes):
        if held[op] not in results:
            results[held[op]] = [value for state in held[op] for value in problem.nodes[nodes[state - 1]].writes]
        kept[stage, results[held[op]]] = True
        kept[stage, list(at_hand.intersection(node.reads))] = True
        at_hand = {*node.reads, *node.writes}
        if node.backward:
            kept[stage + 1 :, list(node.writes)] = True
            op = min(op, max((place[value] for value in node.reads if value in place), default=op))
    return kept
