"""The memory that a training step holds besides its graphs: the optimizer's state.

Invariant: no optimizer and none of its parameters is touched.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree

from remat_cli.errors import RematWarning
from remat_cli.model.quantities import parse_bytes
from remat_cli.torch.reading import tensors_of

Beside: TypeAlias = str | int | torch.optim.Optimizer


def bytes_beside(given: Beside) -> int:
    """The bytes that are held throughout. For an optimizer: the state that its first step will make."""
    return state_bytes(given) if isinstance(given, torch.optim.Optimizer) else parse_bytes(str(given))


def state_to_come(given: Sequence[Any]) -> int:
    """The bytes of state that optimizers of these tensors are going to make: those that made none so far."""
    known = {id(tensor) for tensor in given}
    found = [one for one in set(map(_within, living(torch.optim.Optimizer))) if not one.state]
    own = [one for one in found if any(id(p) in known for group in one.param_groups for p in group["params"])]
    whole = 0
    for optimizer in own:
        try:
            whole += state_bytes(optimizer)
        except ValueError as error:
            warnings.warn(f"remat: no room is left for it, as {error}", RematWarning, stacklevel=2)
    return whole


def living(kind: type[Any]) -> list[Any]:
    """All objects of this kind in the process. Their own types are asked, each once: a proxy of what is gone cannot be,
    and a process has millions of objects."""
    objects = gc.get_objects()
    kinds = {each for each in set(map(type, objects)) if issubclass(each, kind)}
    return [one for one in objects if type(one) in kinds] if kinds else []


def _within(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer that has the parameters, where this one wraps it, as accelerate's do."""
    inner = getattr(optimizer, "optimizer", None)
    wraps = isinstance(inner, torch.optim.Optimizer) and "param_groups" not in vars(optimizer)
    return _within(inner) if wraps else optimizer


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """The bytes of an optimizer's state, found by a step of an equal one whose tensors have no data; where its step
    reads some, by steps for one parameter of each size after another. Raises ValueError where neither can be done."""
    optimizer = _within(optimizer)
    if held := _bytes(optimizer):
        return held
    # a fused optimizer needs tensors with data; the state is the same
    groups = [{**g, "fused": False} if g.get("fused") else g for g in optimizer.param_groups]
    try:
        return _after_a_step(type(optimizer), [{**g, "params": [*map(_without_data, g["params"])]} for g in groups])
    except Exception:  # noqa: BLE001  whatever it reads: it is asked again below
        pass
    try:
        sizes = Counter((place, p.shape, p.dtype) for place, g in enumerate(groups) for p in g["params"])
        return sum(
            count * _after_a_step(type(optimizer), [{**groups[place], "params": [_zeros(shape, dtype)]}])
            for (place, shape, dtype), count in sizes.items()
        )
    except Exception as error:
        name = type(optimizer).__name__
        raise ValueError(
            f"what {name} will hold cannot be foretold ({error}): give beside='2GB' or the like"
        ) from error


def _after_a_step(kind: type[Any], groups: list[dict[str, Any]]) -> int:
    twin = kind(groups)
    twin.step()
    return _bytes(twin)


def _bytes(optimizer: torch.optim.Optimizer) -> int:
    return sum(tensor.nbytes for tensor in tensors_of(pytree.tree_leaves(list(optimizer.state.values()))))


def _without_data(parameter: torch.Tensor) -> torch.nn.Parameter:
    return _with_gradient(torch.empty_like(parameter, device="meta"))


def _zeros(shape: torch.Size, dtype: torch.dtype) -> torch.nn.Parameter:
    return _with_gradient(torch.zeros(shape, dtype=dtype))


def _with_gradient(tensor: torch.Tensor) -> torch.nn.Parameter:
    made = torch.nn.Parameter(tensor.detach(), requires_grad=True)
    made.grad = torch.zeros_like(made)
    return made
