"""Rows that trace what is read to what it was made from, where the linear program's answer breaks them.

Of all traces from a node back to one value after another, the one whose row is broken most is a shortest path, with the
held share of each value as its length.

Invariant: this module only chooses; `solvers.proof.rows` defines a trace.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvers.orders.arrays import arrays_of
from solvers.orders.traces import BROKEN, FROM_PAIR, Floats, Traces, cheapest
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
    before = np.zeros(len(nodes))  # what each node ran in groups before
    found: list[tuple[float, Name]] = []
    for group in range(1, rows.groups):
        before += runs[group - 1]
        held = np.array([_at(rows.held(group, value), values) for value in sizes])
        made = np.zeros(len(nodes))
        for until in range(group, rows.groups):
            made += runs[until]
            traces = cheapest(arrays, free, held, made)
            found += _find_between(traces, runs[until], group, until)
            waiting = _find_between(traces, np.where(last == until, 1.0 - before, 0.0), group, until)
            found += [(off, ("wait", group, *name[3:])) for off, name in waiting]
    return [name for _, name in sorted(found, reverse=True)]


def _at(number: Number | int, values: Mapping[Number, float]) -> float:
    return number if isinstance(number, int) else values.get(number, 0.0)


def _find_between(traces: Traces, runs: Floats, group: int, until: int) -> list[tuple[float, Name]]:
    """The broken rows of nodes that run in group `until`, traced back to what is held as `group` begins."""
    off = runs - traces.cost
    found: list[tuple[float, Name]] = []
    for node in np.argsort(-off, kind="stable")[:FROM_PAIR].tolist():
        if off[node] < BROKEN:
            break
        path = traces.path(int(traces.read[node]))
        if len(path) > 1 or until > group:
            found.append((float(off[node]), ("trace", group, until, node, *path)))
    return found
