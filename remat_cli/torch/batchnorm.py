"""BatchNorm in training returns its running averages: the one common op that reads values which are overwritten later.

Invariant: nothing in its result except the averages depends on the averages. So its backward op, which does not read
them in training, is given none; and a recomputation runs without them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

WITH = torch.ops.aten._native_batch_norm_legit_functional.default  # (x, weight, bias, mean, variance, training, ...)
WITHOUT = torch.ops.aten._native_batch_norm_legit.no_stats  # (x, weight, bias, training, momentum, epsilon)
BACKWARD = torch.ops.aten.native_batch_norm_backward.default  # (gradient, x, weight, mean, variance, ..., train, ...)
TRAINING, TRAIN = 5, 7  # the indices of those arguments
STATISTICS = (1, 2)  # the indices of the batch's own statistics among results
AVERAGES = (3, 4)  # the indices of the averages among arguments and results


def trains(node: fx.Node) -> bool:
    """Whether the op may run again without its averages: the new averages are only stored."""
    if node.target is not WITH or len(node.args) <= TRAINING or node.args[TRAINING] is not True:
        return False
    parts = [part for part in node.users if part.target is operator.getitem and part.args[1] in AVERAGES]
    return all(_keeps(user) for part in parts for user in part.users)


def drop_unread(graph: fx.Graph) -> None:
    """Remove the averages from backward ops that do not read them."""
    for node in graph.nodes:
        if _ignores(node):
            node.args = tuple(None if place in AVERAGES else given for place, given in enumerate(node.args))


def correct_types(graph: fx.Graph) -> None:
    """Say of what type the statistics of a batch are: torch says 16 bits where kernels of CPUs keep 32."""
    for node in graph.find_nodes(op="call_function", target=WITH):
        whole, weight = list(node.meta["val"]), node.args[1]
        if not isinstance(weight, fx.Node) or weight.meta["val"].dtype == whole[0].dtype or whole[0].is_cuda:
            continue
        for place in STATISTICS:
            whole[place] = whole[place].to(weight.meta["val"].dtype)
        node.meta["val"] = tuple(whole)
        for part in node.users:
            if part.target is operator.getitem:
                part.meta["val"] = whole[part.args[1]]


def again(graph: fx.Graph, node: fx.Node, argument: Callable[[fx.Node], fx.Node]) -> fx.Node:
    """The op once more, without its averages; its first three results are the same."""
    arguments = fx.node.map_arg((*node.args[:3], *node.args[TRAINING:]), argument)
    new = graph.call_function(WITHOUT, arguments, dict(node.kwargs))
    new.meta = {**node.meta, "val": tuple(node.meta["val"])[:3]}
    return new


def essence(node: fx.Node) -> tuple[Any, tuple[Any, ...]] | None:
    """What two such ops share if they compute the same results besides averages; None for other ops."""
    if node.target is WITH and node.args[TRAINING] is True:
        return WITHOUT, (*node.args[:3], *node.args[TRAINING:])
    if node.target is WITHOUT:
        return WITHOUT, tuple(node.args)
    if _ignores(node):
        return BACKWARD, (*node.args[:3], None, None, *node.args[5:])
    return None


def _ignores(node: fx.Node) -> bool:
    return node.target is BACKWARD and len(node.args) > TRAIN and node.args[TRAIN] is True


def _keeps(user: fx.Node) -> bool:
    if user.op == "output":
        return True
    target = user.args[0] if user.args else None
    return user.target is torch.ops.aten.copy_.default and isinstance(target, fx.Node) and target.op == "placeholder"
