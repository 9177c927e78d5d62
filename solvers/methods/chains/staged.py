"""The dynamic programs over the stages of a graph, and their orders of computes.

Sizes round up and sharing is not counted, so a program counts more memory than the graph needs. So its table reaches
beyond the budget, and the search looks for the largest memory whose order, measured on the graph, fits.

Invariant: the cost and peak of an order are `measure`'s, never a program's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solvers.methods.chains.chain import Chain, ChainStep
from solvers.methods.chains.from_graph import Stages, cut
from solvers.methods.chains.order import to_order
from solvers.methods.chains.program import ChainSegments, Floats, Ints, Ways
from solvers.methods.chains.slots import Slots, slots
from solvers.methods.chains.stage import Runner, StageWay
from solvers.orders.arrays import Arrays, arrays_of
from solvers.orders.measure import ILLEGAL, measure, trim
from solvers.problem import Problem

BEYOND = 1.25  # how far beyond the budget a table reaches
_TABLE = 10_000_000  # the most entries of a table
_LARGEST_TABLE, _COARSEST = 40_000_000, 40
_FEWEST, _FINEST = 500, 4000
_MORE_TRIES = 12


@dataclass(frozen=True, slots=True)
class StagedOrder:
    order: Ints
    cost: int
    peak: int
    sequence: tuple[ChainStep, ...]


@dataclass(frozen=True, slots=True)
class Staged:
    """A graph cut into stages, with the ways to run each; `runners[l - 1]` and `ways[l - 1]` are stage l's."""

    stages: Stages
    runners: tuple[Runner, ...]
    ways: tuple[tuple[StageWay, ...], ...]
    arrays: Arrays

    def slots(self, budget: int, wanted: int) -> Slots:
        """The slots for the memory that the budget leaves to the stages."""
        problem = self.stages.problem
        sizes = {*problem.sizes, *(node.workspace for node in problem.nodes)} - {0}
        return slots(budget - problem.resident - self.stages.pinned_bytes(), wanted, sizes)

    def found(self, sequence: tuple[ChainStep, ...]) -> StagedOrder:
        order = to_order(self.runners, lambda s, way: self.ways[s - 1][way].keep, sequence)
        trimmed = trim(self.arrays, np.array(order, np.int64))
        cost, peak = measure(self.arrays, trimmed)
        assert peak != ILLEGAL, "a sequence of stages made an order that cannot run"
        return StagedOrder(trimmed, cost, peak, sequence)


def plain(stages: Stages, arrays: Arrays) -> Staged:
    """Each stage keeps all that its backward reads."""
    runners = tuple(Runner(stages, number) for number in range(1, len(stages.stages) + 1))
    return Staged(stages, runners, tuple((runner.way(runner.wanted()),) for runner in runners), arrays)


def chain_of(problem: Problem) -> tuple[Chain, int]:
    """The problem as a chain, cut wherever one value crosses, and the bytes that are held whatever its sequence.

    The paper's chains know nothing of gradients that only wait for the end: here they are held throughout.
    """
    stages, outputs = cut(problem), frozenset(problem.outputs)
    lean = tuple(
        replace(stage, gradient_in=stage.gradient_in - outputs, gradient_out=stage.gradient_out - outputs, finished=0)
        for stage in stages.stages
    )
    stages = replace(stages, stages=lean, pinned=stages.pinned | outputs)
    return as_chain(plain(stages, arrays_of(problem))), problem.resident + stages.pinned_bytes()


def search(
    staged: Staged,
    budget: int,
    whole: Floats,
    sequence: Callable[[int], tuple[ChainStep, ...]],
    stopped: Callable[[], bool],
) -> tuple[StagedOrder | None, StagedOrder | None, bool]:
    """The cheapest order that fits, and the one of least peak, among the program's orders for each memory; and whether
    a larger table might have a cheaper one.

    The search bisects over the memories at which the program's answer changes, to where orders no longer fit; then it
    looks a little beyond.
    """
    finite = np.isfinite(whole)
    changes = [m for m in np.flatnonzero(finite).tolist() if m == 0 or whole[m] != whole[m - 1]]
    seen: dict[int, StagedOrder] = {}

    def fits(place: int) -> bool:
        if place not in seen:
            seen[place] = staged.found(sequence(changes[place]))
        return seen[place].peak <= budget

    low, high = 0, len(changes)
    while low < high and not stopped():
        middle = (low + high) // 2
        low, high = (middle + 1, high) if fits(middle) else (low, middle)
    more = low == len(changes) and whole[-1] != 0
    for place in range(low, min(len(changes), low + _MORE_TRIES)):
        if stopped():
            break
        fits(place)
    fitting = [found for found in seen.values() if found.peak <= budget]
    return (
        min(fitting, key=lambda found: (found.cost, found.peak), default=None),
        min(seen.values(), key=lambda found: (found.peak, found.cost), default=None),
        more,
    )


def fine_slots(stages: int) -> int:
    """As many slots as a table of moderate size allows: the finer, the less is lost to rounding."""
    rows = stages * (stages + 1) // 2
    return max(_FEWEST, min(_FINEST, int(_TABLE / BEYOND / rows)))


def most_slots(stages: int) -> int:
    """Beyond this many slots the table of a very long chain would not fit in memory."""
    return max(_COARSEST, int(_LARGEST_TABLE / BEYOND / (stages * (stages + 1) // 2)))


def segments(staged: Staged, unit: Slots) -> ChainSegments:
    """The stages as the program wants them, sizes in slots."""
    runners, ways = staged.runners, staged.ways
    at_once = [runner.at_once() for runner in runners]
    quickest = [min(way.time for way in some) for some in ways]
    walks = [(runner, runner.walk()) for runner in runners]

    def sizes(amounts: Sequence[int]) -> Ints:
        return np.array([unit.ceil(amount) for amount in amounts], np.int64)

    return ChainSegments(
        walk=np.array([0, *(runner.time(walk) for runner, walk in walks)], np.float64),
        walk_memory=sizes([0, *(runner.peak(walk, frozenset(), runner.stage.output) for runner, walk in walks)]),
        a=sizes([0, *(runner.bytes(runner.stage.output) for runner in runners)]),
        delta=sizes(_gradients(staged)),
        ways=_in_slots([(), *ways], [0, *quickest], sizes),
        at_once=sizes([0, *(memory for _, memory in at_once)]),
        spared=np.array([0, *(full - time for full, (time, _) in zip(quickest, at_once, strict=True))], np.float64),
    )


def _in_slots(
    ways: Sequence[Sequence[StageWay]], quickest: Sequence[int], sizes: Callable[[Sequence[int]], Ints]
) -> Ways:
    flat = [way for some in ways for way in some]
    extra = [way.time - least for some, least in zip(ways, quickest, strict=True) for way in some]
    return Ways(
        start=np.cumsum([0, *(len(some) for some in ways)]),
        time=np.array(extra, np.float64),
        keep=sizes([way.kept for way in flat]),
        holds=np.array([way.holds for way in flat], np.bool_),
        loose=np.array([way.loose for way in flat], np.bool_),
        forward=sizes([way.forward for way in flat]),
        backward=sizes([way.backward for way in flat]),
    )


def as_chain(staged: Staged) -> Chain:
    """The stages in the paper's terms, each run in its first way; the chain never counts less memory than the stages
    need.

    In the paper a^l is part of ā^l. o_f and o_b are the rest of the memory that F_all and B take, and may be negative,
    because δ^l and δ^{l-1} are never both there in full.
    """
    runners, ways = staged.runners, [some[0] for some in staged.ways]
    outputs = [runner.bytes(runner.stage.output) for runner in runners]
    walks = [runner.walk() for runner in runners]
    running = [runner.peak(walk, frozenset(), runner.stage.output) for runner, walk in zip(runners, walks, strict=True)]
    times = [runner.time(walk) for runner, walk in zip(runners, walks, strict=True)]
    abar = [way.kept + r.bytes(r.stage.output - way.keep) for way, r in zip(ways, runners, strict=True)]
    delta = _gradients(staged)
    rows = range(len(runners))
    return Chain(
        forward=(0, *times),
        backward=(0, *(ways[k].time - times[k] for k in rows)),
        a=(0, *outputs),
        abar=(0, *abar),
        o_f=(0, *(max(running[k] - outputs[k], ways[k].forward - abar[k]) for k in rows)),
        o_b=(0, *(ways[k].backward - ways[k].kept - delta[k + 1] - delta[k] for k in rows)),
        delta=tuple(delta),
    )


def _gradients(staged: Staged) -> list[int]:
    """The bytes of δ^0 .. δ^n."""
    first = staged.runners[0]
    last = first.bytes(first.stage.gradient_out) + first.stage.finished
    return [last, *(r.bytes(r.stage.gradient_in) + r.stage.finished for r in staged.runners)]
