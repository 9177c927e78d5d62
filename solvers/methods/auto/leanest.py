"""An order that needs little memory, found by a fixed amount of work: whoever asks gets the same one.

Invariant: neither a budget nor a limit of work decides what is found. So what a refusal names as enough is found
again when it is asked for. Where time is up before, it is the leanest by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from solvers.annealing.local import LocalSearch, usual_moves
from solvers.clock import STATE_MOVES, Clock, Work
from solvers.methods.exact.low_walks import lowest
from solvers.orders.best import Best
from solvers.orders.bounds import PeakBound
from solvers.orders.evict import RULES, Evictor
from solvers.orders.polish import polish
from solvers.pebbles.floor import dig
from solvers.problem import Limits, Problem

WALKING_MOVES = 1_000_000
WALKING_RULES, LEVELS = 2, 8  # of walks that are offered to an allocator
DIGGING_STATES = 80_000
CHEAPENING_GOES = 8


def list_walked(problem: Problem, limits: Limits) -> list[tuple[int, ...]]:
    """Orders of walks that need little, the leanest among them: which of them an allocator places best is not known."""
    least = lowest(problem, _given(limits, WALKING_MOVES)).leanest
    assert least is not None
    clock, found = _given(limits, WALKING_MOVES).clock, {least.steps(): None}
    evictor = Evictor(problem)
    legal = Best(problem, -1, limits.silent())
    for rule in RULES[:WALKING_RULES]:
        for level in range(LEVELS):
            if limits.clock.over():
                return list(found)
            aim = least.peak + least.peak * level // (3 * LEVELS)
            order = evictor.run(aim, rule, limits.seed, clock=clock)
            if len(order) and (known := legal.weigh(order)) is not None:
                found[known.steps()] = None
    return list(found)


class Lean(NamedTuple):
    """The leanest order, and the bound of the least peak that was proved on the way."""

    order: tuple[int, ...]
    bound: PeakBound


def find_lean(problem: Problem, limits: Limits) -> Lean:
    """The leanest order of walks, and of a search through what can be held at once."""
    best = Best(problem, -1, limits.silent())  # nothing fits, so only the least peak counts
    walked = lowest(problem, _given(limits, WALKING_MOVES)).leanest
    assert walked is not None
    best.offer_weighed(walked)
    bound = dig(best, walked.peak, _given(limits, DIGGING_STATES * STATE_MOVES))
    assert best.leanest is not None
    return Lean(best.leanest.steps(), bound)


def list_lean(problem: Problem, limits: Limits, order: Sequence[int]) -> list[tuple[int, ...]]:
    """A cheaper order that needs no more than the leanest, and the leanest, which leaves an allocator more room."""
    best = Best(problem, -1, limits.silent())
    lean = best.weigh(order)
    assert lean is not None
    cheaper = best.weigh(polish(best.arrays, lean.order, lean.peak, limits.clock.interrupts)) or lean
    local = LocalSearch(problem, lean.peak, limits.seed)
    moves = usual_moves(len(problem.nodes))
    for number in range(CHEAPENING_GOES):
        found = best.weigh(local.go(cheaper.order, number, moves, limits.clock).order)
        if found is not None and found.peak <= lean.peak and found.cost < cheaper.cost:
            cheaper = found
    return list(dict.fromkeys((cheaper.steps(), lean.steps())))


def _given(limits: Limits, moves: int) -> Limits:
    """So many moves, whatever was done before."""
    clock = limits.clock
    own = Clock(clock.left(), clock.stopped, work=Work(), most=moves)
    return replace(limits.silent(), clock=own)
