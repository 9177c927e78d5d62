"""`griewank`: binomial checkpointing of a chain, optimal for unit costs and unit sizes. Griewank and Walther, Algorithm
799: Revolve (ACM TOMS 26, 2000); the log n strategy of Griewank (1992) is this with log n snapshots.

Symbols: op i, a link of the chain, turns state i into state i + 1, its result, and is reversed from state i. State 0 is
the input, which is always there, and counts as the first of c snapshots. The last op is the turn, whose reversal begins
the backward pass. beta(c, r) = binomial(c + r, c) is the longest chain that c snapshots can reverse with each op run at
most r times before its own reversal. c is swept.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb

import numpy as np

from solvers.methods.baselines.from_checkpoints import Kept, cheapest_order, nothing_kept
from solvers.methods.baselines.links import links
from solvers.methods.baselines.options import SNAPSHOTS, Snapshots
from solvers.methods.baselines.sweep import over_knob
from solvers.notes import Note, SolverNote
from solvers.orders.best import refuse
from solvers.problem import Limits, Problem, Result


def solve(problem: Problem, budget: int, limits: Limits, options: Snapshots = SNAPSHOTS) -> Result:
    """`snapshots`: a fixed c."""
    snapshots = options.snapshots
    chain = links(problem)
    if chain is None:
        return refuse(problem, budget, limits, Note(SolverNote.ONLY_CHAINS))
    length = len(chain) + 1
    knobs = _settings(length) if snapshots is None else [min(snapshots, length)]
    result = over_knob(problem, budget, limits, knobs, lambda count: order_of(problem, chain, count))
    return replace(result, notes=(Note(SolverNote.FEWEST_FORWARD_RUNS), *result.notes))


def _settings(length: int) -> list[int]:
    """All c of at least log2 n / 2: with fewer, a deep chain's schedule would be nearly quadratically long."""
    return list(range(max(1, length.bit_length() // 2), length + 1))


def order_of(problem: Problem, chain: list[list[int]], snapshots: int) -> list[int]:
    return cheapest_order(problem, _kept(problem, chain, snapshot_ranges(len(chain) + 1, snapshots)))


def snapshot_ranges(length: int, snapshots: int) -> dict[int, int]:
    """state -> end: the state, not 0, is a snapshot while ops `state` to `end` - 1 are reversed, last first."""
    ranges: dict[int, int] = {}
    waiting = [(0, length, snapshots)]
    while waiting:
        low, high, free = waiting.pop()  # reverse ops low..high - 1; state low is the first of `free` snapshots
        while high - low > 1 and free > 1:
            middle = low + split(high - low, free)
            ranges[middle] = high
            waiting.append((middle, high, free - 1))
            high = middle
    return ranges


def split(length: int, snapshots: int) -> int:
    """How far to advance before the next snapshot in a chain of `length` ops whose first state is one of c snapshots.

    Let r be the least that reverses the chain. A point does if beta(c, r - 2) <= split <= beta(c, r - 1) and
    beta(c - 1, r - 1) <= length - split <= beta(c - 1, r).
    """
    repeats = 1
    while _beta(snapshots, repeats) < length:
        repeats += 1
    most = min(_beta(snapshots, repeats - 1), length - _beta(snapshots - 1, repeats - 1))
    return max(most, length - _beta(snapshots - 1, repeats), 1)


def _beta(snapshots: int, repeats: int) -> int:
    return comb(snapshots + repeats, snapshots)


def _kept(problem: Problem, chain: list[list[int]], ranges: dict[int, int]) -> Kept:
    """The values held when each stage begins: the snapshots of the reversal it follows, and what it shares with the
    stage before, or with those that run or reverse the same link."""
    kept = nothing_kept(problem)
    reverses = _ops_reversed(problem, chain)
    follows = np.array([len(chain), *reverses[:-1]], dtype=np.int64)
    for state, end in ranges.items():
        held = (follows >= state) & (follows < end)
        for value in problem.nodes[chain[state - 1][-1]].writes:
            kept[held, value] = True
    wanted = _wanted(problem, chain, reverses)
    at_hand: set[int] = set()
    for stage, node in enumerate(problem.nodes):
        at_hand &= wanted[stage]
        kept[stage, list(at_hand)] = True
        at_hand.update(node.reads, node.writes)
        if node.backward:
            kept[stage + 1 :, list(node.writes)] = True
    return kept


def _wanted(problem: Problem, chain: list[list[int]], reverses: list[int]) -> list[set[int]]:
    """For each stage, its reads, and later reads in running or reversing the same link."""
    groups = _groups(problem, chain, reverses)
    found: list[set[int]] = []
    for stage in range(len(problem.nodes) - 1, -1, -1):
        again = found and groups[stage] == groups[stage + 1]
        found.append(set(problem.nodes[stage].reads) | (found[-1] if again else set()))
    return found[::-1]


def _groups(problem: Problem, chain: list[list[int]], reverses: list[int]) -> list[tuple[bool, int]]:
    """The link that each stage runs or reverses. Ops that update statistics stand among the forward ops that they
    read."""
    number = {index: at for at, link in enumerate(chain) for index in link}
    found: list[tuple[bool, int]] = []
    for stage in range(len(problem.nodes)):
        if stage > chain[-1][-1]:
            found.append((True, reverses[stage]))
        else:
            found.append((False, number[stage]) if stage in number else found[-1] if found else (False, 0))
    return found


def _ops_reversed(problem: Problem, chain: list[list[int]]) -> list[int]:
    """For each stage, the op in whose reversal it takes part.

    It is that of the last state which that stage, or a backward stage before it, reads; at first, the turn. What a link
    has inside comes with its state after.
    """
    state = {v: at + 1 for at, link in enumerate(chain) for index in link for v in problem.nodes[index].writes}
    op = len(chain)
    found: list[int] = []
    for stage, node in enumerate(problem.nodes):
        if node.backward and stage > chain[-1][-1]:
            op = min(op, max((state[value] for value in node.reads if value in state), default=op))
        found.append(op)
    return found
