"""What a schedule does, in the numbers that rows speak of: read off its order, one compute after the other."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from solvers.problem import Problem
from solvers.proof.rows import Number, Rows
from solvers.updates import in_time
from tests.oracle.problems import random_order


def any_order(random: Random, problem: Problem, extra: int) -> tuple[int, ...]:
    """A legal order whose first computes come in any order in which they can."""
    writer, ran, first = problem.writers(), set[int](), list[int]()
    while len(first) < len(problem.nodes):
        ready = [
            index
            for index, node in enumerate(problem.nodes)
            if index not in ran and all(writer[value] in ran for value in node.reads)
        ]
        first.append(random.choice(ready))
        ran.add(first[-1])
    place = {index: step for step, index in enumerate(first)}
    again = random_order(random, problem, extra)  # each repeat stands after the first computes that it needs
    order: list[int] = []
    for index in first:
        order.append(index)
        others = [k for k in again if not problem.nodes[k].once and place[k] <= place[index]]
        order += random.sample(others, min(len(others), random.choice((0, 0, 0, 1, 2)))) if extra else []
    return in_time(problem, order)


def numbers_of(rows: Rows, order: Sequence[int]) -> dict[Number, float]:
    """Every number there is, of an order of the problem without its end."""
    problem, pivots, last = rows.problem, rows.time.pivots, len(rows.problem.nodes) - 1
    steps = [*order, last]
    first = {index: step for step, index in reversed(list(enumerate(steps)))}
    ends = [*(first[pivot] for pivot in pivots), len(steps) - 1]  # of each group
    group = [sum(end < step for end in ends) for step in range(len(steps))]
    found: dict[Number, float] = {}
    for step, index in enumerate(steps):
        found["runs", group[step], index] = 1.0
    for at in range(1, rows.groups):
        there = {v for v in range(len(problem.sizes)) if _is_read(rows, steps, v, ends[at - 1])}
        for value in there:
            found["held", at, value] = 1.0
            root = rows.memory.root[value]
            share = rows.memory.floor[value] / max(1, rows.memory.most[root])
            found["block", at, root] = max(share, found.get(("block", at, root), 0.0))
        made = {v for step in range(ends[at - 1] + 1, ends[at] + 1) for v in problem.nodes[steps[step]].writes}
        for value in there - made:
            if value in rows.end_of(at).reads or _is_read(rows, steps, value, ends[at]):
                found["through", at, value] = 1.0
    return found


def _is_read(rows: Rows, steps: Sequence[int], value: int, after: int) -> bool:
    """Whether a copy that is there after that step is read later."""
    if rows.writer[value] not in steps[: after + 1]:
        return False
    for index in steps[after + 1 :]:
        if value in rows.problem.nodes[index].reads:
            return True
        if index == rows.writer[value]:
            return False
    return False
