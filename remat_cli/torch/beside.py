"""The memory that a training step holds besides its graphs: the optimizer's state.

Invariant: no optimizer and none of its parameters is touched.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree

from remat_cli.model.quantities import parse_bytes
from remat_cli.torch.reading import tensors_of

Beside: TypeAlias = str | int | torch.optim.Optimizer


def bytes_beside(given: Beside) -> int:
    """The bytes that are held throughout. For an optimizer: the state that its first step will make."""
    return state_bytes(given) if isinstance(given, torch.optim.Optimizer) else parse_bytes(str(given))


def state_to_come(given: Sequence[Any]) -> int:
    """The bytes of state that optimizers of these tensors are going to make: those that made none so far."""
    known = {id(tensor) for tensor in given}
    found = [one for one in living(torch.optim.Optimizer) if not one.state]
    own = [one for one in found if any(id(p) in known for group in one.param_groups for p in group["params"])]
    return sum(state_bytes(optimizer) for optimizer in own)


def living(kind: type[Any]) -> list[Any]:
    """All objects of this kind in the process. Their own type is asked: a proxy of what is gone cannot be."""
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """The bytes of an optimizer's state, found by a step of an equal one whose tensors have no data."""
    held = sum(tensor.nbytes for tensor in tensors_of(pytree.tree_leaves(list(optimizer.state.values()))))
    if held:
        return held
    groups = [{**g, "params": [_without_data(p) for p in g["params"]]} for g in optimizer.param_groups]
    for group in groups:
        if group.get("fused"):  # a fused optimizer needs tensors with data; the state is the same
            group["fused"] = False
    try:
        twin: Any = type(optimizer)(groups)
        twin.step()
    except Exception as error:
        name = type(optimizer).__name__
        raise ValueError(
            f"what {name} will hold cannot be foretold ({error}): give beside='2GB' or the like"
        ) from error
    return sum(tensor.nbytes for tensor in tensors_of(pytree.tree_leaves(list(twin.state.values()))))


def _without_data(parameter: torch.Tensor) -> torch.nn.Parameter:
    made = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=True)
    made.grad = torch.empty_like(made)
    return made
