"""Rows that trace what is read to what it was made from, where the linear program's answer breaks them.

Of all traces from a node back to one value after another, the one whose row is broken most is a shortest path, with the
held share of each value as its length.

Invariant: this module only chooses; `solvers.proof.rows` defines a trace.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvers.orders import traces
from solvers.orders.arrays import arrays_of
from solvers.orders.traces import Floats
from solvers.proof.rows import Name, Number
from solvers.prover.program import ProofProgram


def broken(program: ProofProgram, values: Mapping[Number, float]) -> list[Name]:
    """The names of the rows that the values break, worst first."""
    rows = program.source
    arrays, free = arrays_of(rows.problem), np.zeros(len(rows.problem.sizes), np.bool_)
    free[sorted(program.free)] = True
    nodes, sizes = range(len(rows.problem.nodes)), range(len(rows.problem.sizes))
    runs = [np.array([_at(rows.runs(group, node), values) for node in nodes]) for group in range(rows.groups)]
    last = np.array([-1 if rows.time.sure(node) else rows.time.high[node] for node in nodes])

    def held(group: int) -> Floats:
        return np.array([_at(rows.held(group, value), values) for value in sizes])

    found: list[tuple[float, Name]] = []
    for row in traces.broken(arrays, free, runs, held, last):
        if row.waits:
            found.append((row.off, ("wait", row.group, row.node, *row.path)))
        elif len(row.path) > 1 or row.until > row.group:  # else it is `read`, which is in the program
            found.append((row.off, ("trace", row.group, row.until, row.node, *row.path)))
    return [name for _, name in sorted(found, reverse=True)]


def _at(number: Number | int, values: Mapping[Number, float]) -> float:
    return number if isinstance(number, int) else values.get(number, 0.0)
