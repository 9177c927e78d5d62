"""Segments between checkpoints: the values that Chen et al.'s scheme (arXiv 1604.06174) holds, stage by stage.

A segment is a run of forward ops that ends with a checkpoint. In the forward pass its values are held to its end, and
then all except the checkpoint's are dropped. The first backward op that reads one of them recomputes the whole segment,
which is then held to its last use. The last segment, whose backward pass follows at once, is never dropped.

Invariant: on a chain this is Chen's schedule; on any other graph it is a retention that `cheapest_order` makes legal.
"""

from __future__ import annotations

from collections.abc import Collection

from solvers.methods.baselines.forward import forward_nodes
from solvers.methods.baselines.from_checkpoints import Kept, cheapest_order, nothing_kept
from solvers.problem import Problem


def order_of(problem: Problem, checkpoints: Collection[int], crossing: bool = False) -> list[int]:
    return cheapest_order(problem, kept_between(problem, checkpoints, crossing))


def kept_between(problem: Problem, checkpoints: Collection[int], crossing: bool, last_too: bool = False) -> Kept:
    """The S of a set of checkpointed forward ops; with `crossing`, values that later segments read are kept as well.

    `last_too`: the last segment is dropped and recomputed like the others.
    """
    kept = nothing_kept(problem)
    users = problem.readers()
    inside = forward_nodes(problem)
    forward = set(inside) if len(inside) < len(problem.nodes) else set()
    everything_after = len(problem.nodes) - 1

    for index, node in enumerate(problem.nodes):
        if node.backward:
            for value in node.writes:
                kept[index + 1 :, value] = True
    for segment in _split(inside, set(checkpoints)):
        end = segment[-1] if last_too or segment[-1] != inside[-1] else everything_after
        dropped: list[int] = []
        for index in segment:
            for value in problem.nodes[index].writes:
                last = end
                if index in checkpoints:
                    last = everything_after
                elif crossing:
                    last = max([end, *(user for user in users[value] if user in forward)])
                kept[index + 1 : last + 1, value] = True
                if last < everything_after:
                    dropped.append(value)
        _hold_again(kept, users, dropped, end, forward)
    return kept


def _split(nodes: list[int], checkpoints: set[int]) -> list[list[int]]:
    """Runs of `nodes`, each ending with a checkpoint; the remaining nodes are a segment of their own."""
    segments: list[list[int]] = [[]]
    for node in nodes:
        segments[-1].append(node)
        if node in checkpoints:
            segments.append([])
    return [segment for segment in segments if segment]


def _hold_again(kept: Kept, users: list[list[int]], dropped: list[int], end: int, forward: set[int]) -> None:
    """From the first backward op that reads a dropped value, hold them all to their last uses."""
    later = {value: [user for user in users[value] if user > end and user not in forward] for value in dropped}
    first = min((uses[0] for uses in later.values() if uses), default=None)
    if first is None:
        return
    for value, uses in later.items():
        if uses:
            kept[first + 1 : uses[-1] + 1, value] = True
