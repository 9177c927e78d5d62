"""Dropout draws a mask and multiplies by it. On a CPU two ops do the same as the one, bit for bit.

So only the mask, one byte for each number, is made once; what it leaves of the input can be computed again.

Invariant: the new ops draw the same random numbers as the op that they replace. Kernels of other devices, and of other
types and strides, draw otherwise: there the op stays as it is.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from remat_cli.torch.private import is_contiguous_or_false, unset_fake_temporarily, without_modes

DROPOUT = torch.ops.aten.native_dropout.default  # (x, share that is dropped, train) -> (result, mask)
EMPTY = torch.ops.aten.empty_like.default
DRAW = torch.ops.aten.bernoulli.p  # (a tensor of the mask's form, share that is kept)
APPLY = torch.ops.aten.native_dropout_backward.default  # (x, mask, scale)
RESULT, MASK = 0, 1  # the indices of its results
TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def share_and_scale(node: fx.Node) -> tuple[float, float] | None:
    """The share that is kept and the factor for it, of a dropout that two ops can do; None for other nodes."""
    if node.target is not DROPOUT or len(node.args) != 3 or node.args[2] is False or node.kwargs:
        return None
    result = node.meta["val"][RESULT]
    if result.device.type != "cpu" or result.dtype not in TYPES or not is_contiguous_or_false(result):
        return None
    kept = 1.0 - float(node.args[1])
    return kept, 0.0 if kept == 0 else _rounded(1 / kept, result.dtype)


def _rounded(scale: float, dtype: torch.dtype) -> float:
    """The factor as it stands in the op's mask, which has the type of its input."""
    with unset_fake_temporarily(), without_modes():
        return float(torch.tensor(scale, dtype=dtype))


def split(graph: fx.Graph) -> None:
    """Write each dropout of the graph as a mask that is drawn, and its use."""
    for node in graph.find_nodes(op="call_function", target=DROPOUT):
        found = share_and_scale(node)
        parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
        if found is not None and len(parts) == len(node.users):
            _split(graph, node, parts, *found)


def _split(graph: fx.Graph, node: fx.Node, parts: dict[Any, fx.Node], kept: float, scale: float) -> None:
    x, (result, mask) = node.args[0], node.meta["val"]
    with graph.inserting_before(node):
        empty = graph.call_function(EMPTY, (x,), {"dtype": torch.bool})
        drawn = graph.call_function(DRAW, (empty, kept))
        applied = graph.call_function(APPLY, (x, drawn, scale))
    with mask.fake_mode:
        form = torch.empty_like(mask)
    for new, value in ((empty, form), (drawn, mask), (applied, result)):
        new.meta = {**node.meta, "val": value}
    for place, new in ((RESULT, applied), (MASK, drawn)):
        if place in parts:
            parts[place].replace_all_uses_with(new)
            graph.erase_node(parts[place])
    graph.erase_node(node)
