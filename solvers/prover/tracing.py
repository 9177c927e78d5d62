"""Rows that trace what is read to what it was made from, where the linear program's answer breaks them.

Of all traces from a node back to one value after another, the one whose row is broken most is the shortest path by what
is held of each value.

Invariant: only chooses; what a trace says, `solvers.proof.rows` does.
"""

from __future__ import annotations

from collections.abc import Mapping

from solvers.proof.rows import Name, Number, Rows
from solvers.prover.program import Program

_MOST = 60  # rows found at a time for one pair of groups
_BROKEN = 0.02


def broken(program: Program, values: Mapping[Number, float]) -> list[Name]:
    """The names of the rows that the values break, worst first."""
    rows, free = program.source, program.free
    found: list[tuple[float, Name]] = []
    for group in range(1, rows.groups):
        held = [_at(rows.held(group, value), values) for value in range(len(rows.problem.sizes))]
        made = [0.0] * len(rows.problem.nodes)
        for until in range(group, rows.groups):
            runs = [_at(rows.runs(until, node), values) for node in range(len(made))]
            made = [before + now for before, now in zip(made, runs, strict=True)]
            found += _between(rows, group, until, held, made, runs, free)
    return [name for _, name in sorted(found, reverse=True)]


def _at(number: Number | int, values: Mapping[Number, float]) -> float:
    return number if isinstance(number, int) else values.get(number, 0.0)


def _between(
    rows: Rows,
    group: int,
    until: int,
    held: list[float],
    made: list[float],
    runs: list[float],
    free: frozenset[int],
) -> list[tuple[float, Name]]:
    """Of the nodes that run in group `until`, back to what is there as `group` begins."""
    least, after = _shortest(rows, held, made, free)
    found: list[tuple[float, Name]] = []
    for node, x in enumerate(runs):
        if x < _BROKEN:
            continue
        value = min((v for v in rows.problem.nodes[node].reads if v not in free), key=least.__getitem__, default=None)
        if value is None or least[value] > x - _BROKEN:
            continue
        path, at = [], value
        while at >= 0:
            path.append(at)
            at = after[at]
        if len(path) > 1 or until > group:
            found.append((x - least[value], ("trace", group, until, node, *path)))
    return sorted(found, reverse=True)[:_MOST]


def _shortest(rows: Rows, held: list[float], made: list[float], free: frozenset[int]) -> tuple[list[float], list[int]]:
    """For each value, the least sum of a trace from it, and the value that follows; -1 at the end."""
    least, after = list(held), [-1] * len(held)
    for index, node in enumerate(rows.problem.nodes):
        best, follows = made[index], -1
        for read in node.reads:
            if read not in free and least[read] < best:
                best, follows = least[read], read
        for write in node.writes:
            least[write] += best
            after[write] = follows
    return least, after
