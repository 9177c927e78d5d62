"""Computes that a larger room makes needless: a copy is held until the next one would have been made, where that fits.

Invariant: the order given back costs no more, and where it needs more than the budget the one given did too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.clock import Clock
from solvers.orders.arrays import Ints
from solvers.orders.best import Best, Weighed
from solvers.orders.measure import memory_of
from solvers.problem import Problem

_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class _Repeat:
    """A compute that is not its node's first. `gaps`: from when to when each value would have to be held, and its
    bytes; `worth`: what it costs, with what is computed again for it, for each byte and step of those."""

    step: int
    gaps: tuple[tuple[int, int, int], ...]
    worth: float


def kept(known: Weighed, best: Best, clock: Clock) -> Weighed:
    """Longer and longer, until nothing more fits or time is up."""
    for _ in range(_ROUNDS):
        if clock.interrupts():
            break
        memory = memory_of(best.arrays, known.order)
        needless = _needless(memory, _repeats(best.problem, known.order), max(best.budget, known.peak))
        found = _without(known, needless, best)
        if found.cost >= known.cost:
            return found
        known = found
    return known


def _without(known: Weighed, needless: list[int], best: Best) -> Weighed:
    """The order without all of those computes that it can do without: what they share may tell otherwise."""
    gone: list[int] = []
    found, parts = known, [needless]
    while parts and not best.over():
        part = parts.pop()
        tried = best.weigh(np.delete(known.order, gone + part), known.by) if part else None
        if tried is not None and tried.cost <= found.cost and tried.peak <= max(best.budget, known.peak):
            found, gone = tried, gone + part
        elif len(part) > 1:
            parts += [part[len(part) // 2 :], part[: len(part) // 2]]
    return found


def _needless(memory: Ints, repeats: list[_Repeat], budget: int) -> list[int]:
    """The steps that can be left out, those worth most first."""
    memory, found = memory.copy(), []
    for repeat in sorted(repeats, key=lambda repeat: -repeat.worth):
        if all(int(memory[begin:end].max()) + size <= budget for begin, end, size in repeat.gaps):
            found.append(repeat.step)
            for begin, end, size in repeat.gaps:
                memory[begin:end] += size
    return found


def _repeats(problem: Problem, order: Ints) -> list[_Repeat]:
    nodes, sizes = problem.nodes, problem.sizes
    used: dict[int, int] = {}  # value -> when its copy at hand is last used, as far as known
    steps = order.tolist()
    last: list[dict[int, int]] = []  # for each step, of each value it writes: the last use of the copy before
    again: list[bool] = []
    for step, index in enumerate(steps):
        node = nodes[index]
        for value in node.reads:
            used[value] = step
        again.append(all(value in used for value in node.writes) and bool(node.writes))
        last.append({value: used[value] for value in node.writes if value in used})
        used.update(dict.fromkeys(node.writes, step))
    wanted, prices = set(problem.outputs), _prices(problem, steps, again)
    found: list[_Repeat] = []
    for step in range(len(steps) - 1, -1, -1):
        node = nodes[steps[step]]
        if again[step] and not node.once:
            gaps = [(last[step][v] + 1, step + 1, sizes[v]) for v in node.writes if v in wanted]
            size = sum((end - begin) * size for begin, end, size in gaps)
            found.append(_Repeat(step, tuple(gap for gap in gaps if gap[0] < gap[1]), prices[step] / max(1, size)))
        wanted.difference_update(node.writes)
        wanted.update(node.reads)
    return found


def _prices(problem: Problem, steps: list[int], again: list[bool]) -> list[float]:
    """What each compute that is not its node's first costs, with its part of those that it reads from."""
    maker: dict[int, int] = {}
    readers = [0] * len(steps)
    sources: list[set[int]] = []
    for step, index in enumerate(steps):
        sources.append({maker[value] for value in problem.nodes[index].reads})
        for source in sources[-1]:
            readers[source] += 1
        maker.update(dict.fromkeys(problem.nodes[index].writes, step))
    prices: list[float] = []
    for step, index in enumerate(steps):
        shared = sum(prices[source] / readers[source] for source in sources[step])
        prices.append(problem.nodes[index].cost + shared if again[step] else 0.0)
    return prices
