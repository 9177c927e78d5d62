"""Finds the ops of the backward pass that depend on the loss's gradient; the others only read what the forward pass
made.

A mask of where an activation is positive is in the backward pass, but needs no gradient. It could be computed in the
forward pass and kept in place of the activation. PyTorch's joint graphs name their tangents. Here the first op of the
backward pass on which every gradient depends stands for them. Where the loss is linear its gradient is a constant, and
masks may come first. Then it is the op at which the constant meets what the forward pass made.

Invariant: an op that is not marked as backward depends on no tangent; where no such first op is found, all of the
backward pass counts as dependent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from solvers.problem import Problem


def tangents(problem: Problem) -> list[bool]:
    """For each node, whether it can run only once the loss's gradient is there."""
    writer = problem.writers()
    sources = [{writer[value] for value in node.reads} for node in problem.nodes]
    backward = [node.backward for node in problem.nodes]
    return following(sources, backward, {writer[value] for value in problem.outputs})


def following(sources: Sequence[Collection[int]], backward: Sequence[bool], ends: Collection[int]) -> list[bool]:
    """The same for ops that read the results of their `sources`, earlier ops; `ends` write the step's outputs."""
    seed = _seed(sources, backward, ends)
    if seed is None:
        return list(backward)
    found = [False] * len(sources)
    for op, read in enumerate(sources):
        found[op] = op == seed or (backward[op] and any(found[source] for source in read))
    return found


def _seed(sources: Sequence[Collection[int]], backward: Sequence[bool], ends: Collection[int]) -> int | None:
    """The first backward op, of those that look at the forward pass, on which the most gradients depend."""
    looks = [False] * len(sources)
    for op, read in enumerate(sources):
        looks[op] = backward[op] and any(not backward[source] or looks[source] for source in read)
    wanted_by = [1 << op if op in ends else 0 for op in range(len(sources))]
    for op in range(len(sources) - 1, -1, -1):
        for source in sources[op]:
            if backward[source]:
                wanted_by[source] |= wanted_by[op]
    most = max((wanted.bit_count() for op, wanted in enumerate(wanted_by) if looks[op]), default=0)
    places = [op for op, wanted in enumerate(wanted_by) if looks[op] and wanted.bit_count() == most]
    if not most:
        return None
    constant = {
        op for op in range(places[0]) if backward[op] and not looks[op] and wanted_by[places[0]] & ~wanted_by[op] == 0
    }
    return next((op for op in places if not constant.isdisjoint(sources[op])), places[0])
