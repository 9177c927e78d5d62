"""The dynamic program over the stages of a graph, and the orders of computes that it leads to.

Sizes round up and sharing is not counted, so the program believes in more memory than the graph needs. So the table is
filled beyond the budget, and what is looked for is the largest memory whose order, measured on the graph, fits.

Invariant: what an order costs and needs is `measure`'s word, never the program's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from solvers.chains.chain import Step
from solvers.chains.from_graph import Stages
from solvers.chains.order import to_order
from solvers.chains.program import Ints, Segments, Table, Ways, solve_segments, trace
from solvers.chains.slots import Slots, slots
from solvers.chains.stage import Runner, Way
from solvers.exact.arrays import Arrays
from solvers.exact.measure import measure, trim

BEYOND = 1.25  # how far past the budget the table goes
_TABLE = 20_000_000  # entries, at most
_FEWEST, _FINEST = 500, 4000
_BEYOND_TRIES = 20


@dataclass(frozen=True, slots=True)
class Found:
    order: tuple[int, ...]
    cost: int
    peak: int
    sequence: tuple[Step, ...]


def best_orders(
    stages: Stages, runners: Sequence[Runner], ways: Sequence[Sequence[Way]], arrays: Arrays, budget: int, wanted: int
) -> list[Found]:
    """Orders that the program leads to: the cheapest that fits first, or else the one of least peak."""
    room = budget - stages.problem.resident - stages.pinned_bytes()
    if room <= 0:
        return []
    unit = _unit(stages, room, wanted)
    table = solve_segments(segments(stages, runners, ways, unit), int(unit.count * BEYOND))
    return _search(table, _Orders(stages, runners, ways, arrays), budget)


class _Orders:
    def __init__(
        self, stages: Stages, runners: Sequence[Runner], ways: Sequence[Sequence[Way]], arrays: Arrays
    ) -> None:
        self.stages, self.runners, self.ways, self.arrays = stages, runners, ways, arrays

    def found(self, sequence: tuple[Step, ...]) -> Found:
        order = to_order(self.stages, self.runners, lambda s, way: self.ways[s - 1][way].keep, sequence)
        trimmed = trim(self.arrays, np.array(order, np.int64))
        cost, peak = measure(self.arrays, trimmed)
        return Found(tuple(map(int, trimmed)), cost, peak, sequence)


def segments(stages: Stages, runners: Sequence[Runner], ways: Sequence[Sequence[Way]], unit: Slots) -> Segments:
    """The stages as the program wants them, sizes in slots."""
    at_once = [runner.at_once() for runner in runners]
    quickest = [min(way.time for way in some) for some in ways]
    walks = [runner.walk() for runner in runners]
    outputs = [runner.stage.output for runner in runners]
    first = runners[0]

    def sizes(amounts: Sequence[int]) -> Ints:
        return np.array([unit.ceil(amount) for amount in amounts], np.int64)

    return Segments(
        walk=np.array([0, *(runner.time(walk) for runner, walk in zip(runners, walks, strict=True))], np.float64),
        walk_memory=sizes(
            [0, *(r.peak(walk, frozenset(), out) for r, walk, out in zip(runners, walks, outputs, strict=True))]
        ),
        a=sizes([0, *(first.bytes(out) for out in outputs)]),
        delta=sizes([first.bytes(first.stage.gradient_out), *(first.bytes(r.stage.gradient_in) for r in runners)]),
        ways=_in_slots([[], *ways], [0, *quickest], sizes),
        at_once=sizes([0, *(memory for _, memory in at_once)]),
        spared=np.array([0, *(full - time for full, (time, _) in zip(quickest, at_once, strict=True))], np.float64),
    )


def _in_slots(ways: Sequence[Sequence[Way]], quickest: Sequence[int], sizes: Callable[[Sequence[int]], Ints]) -> Ways:
    flat = [way for some in ways for way in some]
    return Ways(
        start=np.cumsum([0, *(len(some) for some in ways)]),
        time=np.array([way.time - least for some, least in zip(ways, quickest, strict=True) for way in some], np.float64),
        keep=sizes([way.kept for way in flat]),
        holds=np.array([way.holds for way in flat], np.bool_),
        loose=np.array([way.loose for way in flat], np.bool_),
        forward=sizes([way.forward for way in flat]),
        backward=sizes([way.backward for way in flat]),
    )


def _unit(stages: Stages, room: int, wanted: int) -> Slots:
    sizes = {size for size in stages.problem.sizes if size} | {node.workspace for node in stages.problem.nodes}
    return slots(room, wanted, sizes)


def fine_slots(stages: int) -> int:
    """As many slots as a table of moderate size allows: the finer, the less is lost to rounding."""
    rows = stages * (stages + 1) // 2
    return max(_FEWEST, min(_FINEST, int(_TABLE / BEYOND / rows)))


def _search(table: Table, orders: _Orders, budget: int) -> list[Found]:
    """Try the memories at which the program's answer changes: bisect to where orders stop to fit, then look beyond."""
    whole = table.whole()
    changes = [m for m in range(len(whole)) if np.isfinite(whole[m]) and (m == 0 or whole[m] != whole[m - 1])]
    seen: dict[int, Found] = {}

    def fits(place: int) -> bool:
        m = changes[place]
        if m not in seen:
            seen[m] = orders.found(trace(table, m))
        return seen[m].peak <= budget

    low, high = 0, len(changes)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(middle) else (low, middle)
    for place in range(max(0, low - 3), min(len(changes), low + _BEYOND_TRIES)):
        fits(place)
    fitting = sorted((f for f in seen.values() if f.peak <= budget), key=lambda f: (f.cost, f.peak))
    return fitting or sorted(seen.values(), key=lambda f: f.peak)
