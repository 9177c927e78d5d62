"""A sequence of steps over stages as an order of computes over the graph they were cut from.

Retention follows from the order: what a later compute reads is held, and what is computed again before it is read again
is not. So F_ck, F_0 and F_all differ only in which nodes they run.

Invariant: every node runs at least once, and those that may run only once do, at the first visit of their stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvers.methods.chains.chain import ChainStep, StageOp
from solvers.methods.chains.stage import Runner

Keeps = Callable[[int, int], frozenset[int]]  # stage, way -> what it keeps


def to_order(runners: Sequence[Runner], keeps: Keeps, sequence: Sequence[ChainStep]) -> tuple[int, ...]:
    """`runners[l - 1]` runs stage l; a B right after its own F_all computes what it needs as it goes."""
    order: list[int] = []
    kept: dict[int, frozenset[int]] = {}
    visited: set[int] = set()
    for place, step in enumerate(sequence):
        runner = runners[step.stage - 1]
        first = step.stage not in visited
        visited.add(step.stage)
        if step.op is StageOp.BACK:
            order += runner.backward(kept.pop(step.stage, frozenset()))
            continue
        following = sequence[place + 1] if place + 1 < len(sequence) else None
        if step.op is not StageOp.ALL:
            nodes = runner.walk()
        elif following is not None and following.op is StageOp.BACK and following.stage == step.stage:
            nodes = ()
        else:
            kept[step.stage] = keeps(step.stage, step.way)
            nodes = runner.forward(kept[step.stage])
        order += sorted({*nodes, *runner.unavoidable}) if first else nodes
    return tuple(order)
