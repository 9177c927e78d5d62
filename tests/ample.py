"""Limits for searches in tests: work, which is the same however busy the machine is, and never time."""

from __future__ import annotations

from collections.abc import Callable

from solvers.clock import Clock, limited

MOVES = 20_000_000  # some ten seconds of search by itself; most searches in tests end long before, by proof


def ample(moves: int = MOVES, stopped: Callable[[], bool] | None = None) -> Clock:
    clock = limited(moves=moves)
    return clock if stopped is None else clock.unless(stopped)
