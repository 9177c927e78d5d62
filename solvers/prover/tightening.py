"""Adds rows that the linear program's answer breaks, until the bound is enough or no longer rises.

Invariant: the bound only rises.
"""

from __future__ import annotations

from solvers.clock import Clock
from solvers.orders.traces import MOST, ROUNDS, STALLED
from solvers.prover import rounding, tracing
from solvers.prover.duals import Duals

_GAIN = 1e-5  # share of the bound's excess over the cost of running everything once


def tighten(duals: Duals, goal: float, clock: Clock) -> None:
    solved, stalled = duals.solve({}), 0
    for _ in range(ROUNDS):
        if clock.over() or solved.bound >= goal or not solved.values:
            return
        program = duals.program
        found = [*tracing.broken(program, solved.values)[:MOST], *rounding.broken(program, solved.values)]
        if not [name for name in found if program.add(name)]:
            return
        duals.take()
        before, solved = solved.bound, duals.solve({})
        worth = solved.bound > before + _GAIN * (before - duals.costs.total)
        stalled = 0 if worth else stalled + 1
        if stalled >= STALLED:
            return
