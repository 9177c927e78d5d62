"""Gradients in the layout of the tensors that they are of, as autograd keeps them.

Where a gradient is laid out otherwise, autograd copies it when the backward pass is over, while all others are held.
Here the graph copies it instead, as soon as it is there, and the plan counts the copy.

Invariant: a copy has the numbers of what it copies, in the layout that autograd would give it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from remat_cli.torch.reading import is_tangent, output_of

COPY = torch.ops.aten.clone.default
OURS = "remat_layout"  # marks a copy that is made here
LAYOUTS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)


def match(graph: fx.Graph, num_fwd_outputs: int, leaves: Sequence[bool]) -> None:
    """Copy the gradients of leaves into their layouts. `leaves`: which inputs autograd keeps the gradients of."""
    given = [node for node in graph.find_nodes(op="placeholder") if not is_tangent(node)]
    output = output_of(graph)
    results = list(output.args[0])
    if not len(leaves) == len(given) == len(results) - num_fwd_outputs:
        return
    for place, (leaf, tensor) in enumerate(zip(leaves, given, strict=True), num_fwd_outputs):
        gradient = results[place]
        if not leaf or not isinstance(gradient, fx.Node) or results.count(gradient) > 1:
            continue
        layout = _wanted(tensor.meta.get("val"), gradient.meta.get("val"))
        if layout is not None:
            with graph.inserting_before(output):
                results[place] = graph.call_function(COPY, (gradient,), {"memory_format": layout})
            value = gradient.meta["val"].clone(memory_format=layout)
            results[place].meta = {**gradient.meta, "val": value, OURS: True}
    output.args = (tuple(results),)


def copied(node: fx.Node) -> fx.Node | None:
    """What a copy that is made here is of; None for other nodes."""
    source = node.args[0] if node.target is COPY and node.meta.get(OURS) else None
    return source if isinstance(source, fx.Node) else None


def _wanted(tensor: object, gradient: object) -> torch.memory_format | None:
    """The layout in which autograd would copy the gradient; None where it takes it as it is."""
    if not isinstance(tensor, torch.Tensor) or not isinstance(gradient, torch.Tensor):
        return None
    if tensor.layout != torch.strided or gradient.layout != torch.strided or tensor.shape != gradient.shape:
        return None
    if not all(isinstance(number, int) for number in (*tensor.shape, *tensor.stride(), *gradient.stride())):
        return None
    if all(size == 1 or a == b for size, a, b in zip(tensor.shape, tensor.stride(), gradient.stride(), strict=True)):
        return None
    return next((layout for layout in LAYOUTS if _lies(tensor, layout)), None)


def _lies(tensor: torch.Tensor, layout: torch.memory_format) -> bool:
    dimensions = {torch.channels_last: 4, torch.channels_last_3d: 5}.get(layout, tensor.dim())
    return tensor.dim() == dimensions and tensor.is_contiguous(memory_format=layout)
