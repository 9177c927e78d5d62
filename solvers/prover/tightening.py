"""Adds rows that the linear program's answer breaks, until the bound is enough or no longer rises.

Invariant: the bound only rises.
"""

from __future__ import annotations

from solvers.clock import Clock
from solvers.prover import rounding, tracing
from solvers.prover.duals import Duals

_ROUNDS = 60
_TRACES = 300  # rows added at a time
_STALLED = 3  # rounds without a real gain
_GAIN = 1e-5  # share of the bound's excess over the cost of running everything once


def tighten(duals: Duals, goal: float, clock: Clock) -> None:
    solved, stalled = duals.solve({}), 0
    for _ in range(_ROUNDS):
        if clock.over() or solved.bound >= goal or not solved.values:
            return
        program = duals.program
        found = [*tracing.broken(program, solved.values)[:_TRACES], *rounding.broken(program, solved.values)]
        if not [name for name in found if program.add(name)]:
            return
        duals.take()
        before, solved = solved.bound, duals.solve({})
        worth = solved.bound > before + _GAIN * (before - duals.costs.total)
        stalled = 0 if worth else stalled + 1
        if stalled >= _STALLED:
            return
