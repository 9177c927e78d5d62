"""What no schedule can get below, by counting alone.

Invariant: every bound holds for every order, repeats and any order of first computes included; in-place writes and
writes left out are counted as if they were always possible.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class PeakBound:
    """While `node` runs, `values` are in memory; they, its workspace and the resident size come to `peak`."""

    peak: int
    node: int | None
    values: tuple[int, ...]


def cost_bound(problem: Problem) -> int:
    """Every node runs at least once."""
    return sum(node.cost for node in problem.nodes)


def peak_bound(problem: Problem) -> PeakBound:
    """The op that needs most for itself, or the outputs together."""
    ends = problem.resident + sum(problem.sizes[value] for value in set(problem.outputs))
    best = PeakBound(ends, None, tuple(sorted(set(problem.outputs))))
    for index, node in enumerate(problem.nodes):
        values = sorted({*node.reads, *_surely_written(problem, index)})
        peak = problem.resident + node.workspace + sum(problem.sizes[value] for value in values)
        if peak > best.peak:
            best = PeakBound(peak, index, tuple(values))
    return best


def _surely_written(problem: Problem, index: int) -> list[int]:
    """Writes that take memory of their own at least once: neither left out, nor a view, nor in a read's place."""
    node = problem.nodes[index]
    shared = {write for write, _ in (*node.views, *node.overwrites)}
    return [write for write in node.writes if write not in shared and write not in problem.optional]
