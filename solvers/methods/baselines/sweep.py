"""Tries the schedules that a method proposes and answer with the cheapest one that fits.

Invariant: a method that finds nothing within the budget answers UNKNOWN with its schedule of least peak: having failed
proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvers.orders.best import Best
from solvers.problem import Limits, Problem, Result


def only(problem: Problem, budget: int, limits: Limits, order: Sequence[int]) -> Result:
    """The one schedule that a method proposes."""
    return over_knob(problem, budget, limits, [0], lambda _: order)


def over_knob(
    problem: Problem, budget: int, limits: Limits, knobs: Sequence[int], order_at: Callable[[int], Sequence[int]]
) -> Result:
    """Sweep a sorted list of knob settings: all of them, or on large graphs a few, and then more around the best."""
    best = Best(problem, budget, limits)
    most = max(LEAST_TRIES, NODES_TRIED // len(problem.nodes))
    tried: dict[int, tuple[bool, int, int]] = {}
    chosen = _spread(len(knobs), most if len(knobs) <= most else most // 2)
    while chosen:
        for place in chosen:
            found = best.offer(order_at(knobs[place]), "the sweep")
            assert found is not None, "a method made an order that cannot run"
            fits = best.fits(found)
            tried[place] = (not fits, found.cost if fits else found.peak, place)
            if best.over():
                return best.result()
        chosen = _around(min(tried.values())[2], sorted(tried), len(knobs)) if len(tried) < most else []
    return best.result()


LEAST_TRIES, NODES_TRIED = 24, 50_000  # settings tried at least; and nodes, which keeps a sweep within a second or so


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _around(place: int, tried: list[int], count: int) -> list[int]:
    """Untried places between `place` and the tried ones beside it."""
    at = tried.index(place)
    low = tried[at - 1] if at else -1
    high = tried[at + 1] if at + 1 < len(tried) else count
    between = [range(low + 1, place), range(place + 1, high)]
    return [part[i] for part in between for i in _spread(len(part), 4)]
