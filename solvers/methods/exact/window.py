"""A better order near a known one, by a program over a few nodes at all stages, everything else held as it is.

The known order is laid out as a sequence of steps, with further runs of the chosen nodes put in wherever a stage could
use them. x(k) says that step k runs, h(v, i) that a chosen node's value v is held through its i-th interval, from one
step that writes or reads it to the next:

    minimise   cost of the steps that need not run, subject to
    (1)  h(v, i) <= h(v, i - 1) + x(k) where step k between them writes v, h(v, i) <= h(v, i - 1) where it reads v
    (2)  h(v, i) >= x(k) where interval i ends at a step k that reads v
    (3)  h(v, i) + x(k) <= 1 where interval i ends at a step k that writes v
    (4)  at each step, what the other nodes' values take as things are, the h across it and what it writes itself fit

This is Checkmate's program in its improved form (no FREE, no U; knapsack rows where a peak can occur), cut down to a
neighbourhood; steps may stand anywhere, so that an order may run a node several times within one stage.

Invariant: an order is only suggested; the caller measures it. (4) is the known order's own memory at its own steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd
from random import Random

from solvers import scip
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class WindowStep:
    """`known`: where the known order has it, or None if it was put in; `first`: must run."""

    node: int
    known: int | None
    first: bool


@dataclass(slots=True)
class WindowProgram:
    problem: Problem  # with a last node that reads the outputs
    steps: list[WindowStep]
    program: scip.Program
    runs: dict[int, int]  # step -> column of x
    start: list[float]

    def order(self, values: Sequence[float]) -> list[int]:
        chosen = [k for k, step in enumerate(self.steps) if k not in self.runs or values[self.runs[k]] > 0.5]
        return [self.steps[k].node for k in chosen][:-1]


def neighbours(problem: Problem, random: Random, count: int) -> frozenset[int]:
    """Two balls of nodes around random ones, by what reads what: swaps take place between far-off parts too."""
    writer, readers = problem.writers(), problem.readers()
    chosen: set[int] = set()
    for size in (count // 2, count):
        layer = [random.randrange(len(problem.nodes) - 1)]
        while layer and len(chosen) < size:
            chosen.update(layer[: size - len(chosen)])
            near = [writer[value] for node in layer for value in problem.nodes[node].reads]
            near += [reader for node in layer for value in problem.nodes[node].writes for reader in readers[value]]
            layer = sorted({node for node in near if node not in chosen})
            random.shuffle(layer)
    return frozenset(node for node in chosen if not problem.nodes[node].once)


def lay_out(problem: Problem, order: Sequence[int], chosen: frozenset[int]) -> list[WindowStep]:
    """The steps of an order that ends with the last node, and runs of chosen nodes wherever a stage could use them."""
    steps: list[WindowStep] = []
    stage: list[WindowStep] = []
    seen: set[int] = set()
    for place, node in enumerate(order):
        stage.append(WindowStep(node, place, node not in seen))
        if node not in seen:
            seen.add(node)
            steps += _with_candidates(problem, stage, chosen)
            stage = []
    return steps


def _with_candidates(problem: Problem, stage: list[WindowStep], chosen: frozenset[int]) -> list[WindowStep]:
    """Put in before the first step of a higher index, so that they stand in index order among themselves."""
    wanted = {value for step in stage for value in problem.nodes[step.node].reads}
    there = {step.node for step in stage}
    found: list[int] = []
    for node in sorted((node for node in chosen if node < stage[-1].node), reverse=True):
        if wanted.intersection(problem.nodes[node].writes):
            wanted.update(problem.nodes[node].reads)
            if node not in there:
                found.append(node)
    merged: list[WindowStep] = []
    for step in stage:
        while found and found[-1] < step.node:
            merged.append(WindowStep(found.pop(), None, False))
        merged.append(step)
    return merged


def build(
    problem: Problem, order: Sequence[int], memory: Sequence[int], budget: int, chosen: frozenset[int], scale: float
) -> WindowProgram:
    """The program; `order` ends with the last node, `memory` is in use at each of its steps."""
    steps, taken = _held(problem, lay_out(problem, order, chosen), chosen)
    window = WindowProgram(problem, steps, scip.Program(), {}, [])
    rows: list[dict[int, int]] = [{} for _ in steps]
    for k, step in enumerate(steps):
        if step.node in chosen and not step.first:
            window.runs[k] = _variable(window, step.known is not None, problem.nodes[step.node].cost / scale)
            rows[k][window.runs[k]] = problem.nodes[step.node].workspace
    for value in sorted({value for node in chosen for value in problem.nodes[node].writes}):
        _add_value(window, value, rows)
    rooms: dict[tuple[tuple[int, int], ...], int] = {}
    for row, step, fixed in zip(rows, steps, taken, strict=True):
        there = sum(round(window.start[column]) * size for column, size in row.items())
        room = budget - (fixed if step.known is None else memory[step.known] - there)
        key = tuple(row.items())
        rooms[key] = min(room, rooms.get(key, room))
    for key, room in rooms.items():
        _add_knapsack(window.program, key, room)
    return window


def _variable(window: WindowProgram, start: bool, cost: float = 0.0, low: float = 0.0) -> int:
    window.start.append(float(start))
    return window.program.variable(cost, low)


def _held(problem: Problem, steps: Sequence[WindowStep], chosen: frozenset[int]) -> tuple[list[WindowStep], list[int]]:
    """The steps less those put in that read what is not there then; and what all but the chosen nodes' values take."""
    ends = _ends(problem, steps)
    writer = problem.writers()
    there: dict[int, int] = {}  # value -> the step up to which it is held
    leaving = [0] * len(steps)
    total = problem.resident
    kept: list[WindowStep] = []
    taken: list[int] = []
    for k, step in enumerate(steps):
        node = problem.nodes[step.node]
        if step.known is None and not all(writer[read] in chosen or there.get(read, -1) >= k for read in node.reads):
            continue
        for value in node.writes if step.node not in chosen else ():
            there[value] = ends[k, value]
            leaving[there[value]] += problem.sizes[value]
            total += problem.sizes[value]
        kept.append(step)
        taken.append(total)
        total -= leaving[k]
    return kept, taken


def _ends(problem: Problem, steps: Sequence[WindowStep]) -> dict[tuple[int, int], int]:
    """For each known step and value that it writes: the last known step that reads this copy."""
    ends: dict[tuple[int, int], int] = {}
    last: dict[int, int] = {}
    for k in range(len(steps) - 1, -1, -1):
        if steps[k].known is not None:
            node = problem.nodes[steps[k].node]
            ends.update({(k, value): last.pop(value, k) for value in node.writes})
            for value in node.reads:
                last.setdefault(value, k)
    return ends


def _add_value(window: WindowProgram, value: int, rows: list[dict[int, int]]) -> None:
    """(1) to (3), and the value's part of (4)."""
    problem, program, runs = window.problem, window.program, window.runs
    events = [k for k, step in enumerate(window.steps) if _touches(problem, step.node, value)]
    held = _held_known(window, events, value)
    before: int | None = None
    for (k, ends), start in zip(pairwise(events), held, strict=True):
        reads = value in problem.nodes[window.steps[ends].node].reads
        column = _variable(window, start, low=float(reads and ends not in runs))
        if before is not None:
            wrote = [runs[k]] if value in problem.nodes[window.steps[k].node].writes else []
            program.row([column, before, *wrote], [1.0, -1.0, *([-1.0] * len(wrote))], high=0.0)
        if reads and ends in runs:
            program.row([column, runs[ends]], [1.0, -1.0], low=0.0)
        elif not reads:
            program.row([column, runs[ends]], [1.0, 1.0], high=1.0)
        for step in range(k + 1, ends + 1):
            rows[step][column] = problem.sizes[value]
        before = column
    for k in events:
        if k in runs and value in problem.nodes[window.steps[k].node].writes:
            rows[k][runs[k]] += problem.sizes[value]


def _touches(problem: Problem, node: int, value: int) -> bool:
    return value in problem.nodes[node].reads or value in problem.nodes[node].writes


def _held_known(window: WindowProgram, events: Sequence[int], value: int) -> list[bool]:
    """Whether the known order holds the value from each event to the next."""
    held: list[bool] = []
    needed = False
    for k in reversed(events[1:]):
        if window.steps[k].known is not None:
            needed = value in window.problem.nodes[window.steps[k].node].reads
        held.append(needed)
    return held[::-1]


def _add_knapsack(program: scip.Program, terms: Sequence[tuple[int, int]], room: int) -> None:
    terms = [(column, size) for column, size in terms if size]
    if sum(size for _, size in terms) > room:
        common = gcd(*(size for _, size in terms))
        program.row([column for column, _ in terms], [size // common for _, size in terms], high=room // common)
