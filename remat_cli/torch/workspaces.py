"""What kernels work in beside their arguments and results, measured by running an op once on tensors of its form.

Invariant: measuring draws nothing from the user's random numbers, and an op that cannot be run works in nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from remat_cli.torch.allocations import allocated
from remat_cli.torch.private import OpOverload, unset_fake_temporarily, without_modes
from remat_cli.torch.reading import bytes_of, tensors_of

_aten = torch.ops.aten
WORKSPACES: dict[str, int] = {}  # signature -> bytes, of this process
WITHOUT = {_aten.empty_strided, _aten.empty, _aten.as_strided}
FAILURES = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AssertionError)


def workspace_at(op: fx.Node) -> int:
    """What an op of a graph works in, where that can be measured here: on a CPU."""
    args, kwargs = fx.node.map_arg((op.args, op.kwargs), lambda node: node.meta.get("val"))
    return workspace_on_cpu(op.target, args, kwargs)


def workspace_on_cpu(function: Any, args: Any, kwargs: Any) -> int:
    """The same, for a call."""
    given = tensors_of([args, kwargs])
    on_cpu = all(tensor.device.type == "cpu" for tensor in given)
    return workspace_of(function, args, kwargs) if given and on_cpu else 0


def real(value: Any) -> Any:
    """A tensor with numbers in it that every op takes: zeros where they may be places, small ones otherwise."""
    if isinstance(value, torch.Tensor):
        sizes, strides = [bytes_of(n) for n in value.shape], [bytes_of(n) for n in value.stride()]
        steps = (max(0, size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        made = torch.empty(1 + sum(steps), dtype=value.dtype, device=value.device)  # an expanded one is smaller
        small = value.dtype.is_floating_point and value.dtype.itemsize > 1
        made = (made.uniform_(0.1, 1) if small else made.zero_()).as_strided(sizes, strides)
        return made.conj() if value.is_conj() else made
    return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value


def without_drawing() -> AbstractContextManager[None]:
    """Within it, what is drawn is not missing from the user's random numbers, on a CPU or on the device in use."""
    return torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_initialized() else [])


class Spelled(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def spelling(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        size = "x".join(str(bytes_of(length)) for length in value.shape)
        stride = ",".join(str(bytes_of(length)) for length in value.stride())
        conjugate = "*" if value.is_conj() else ""
        return f"{str(value.dtype).removeprefix('torch.')}{conjugate}[{size};{stride}]{value.device.type}"
    return str([spelling(part) for part in value]) if isinstance(value, (tuple, list)) else str(value)


def workspace_of(function: Any, args: Any, kwargs: Any) -> int:
    """The bytes that an op works in beside its result, given tensors without data; measured once for each signature."""
    if not isinstance(function, OpOverload) or function.namespace != "aten":
        return 0
    if function.overloadpacket in WITHOUT or function.is_view:
        return 0
    key = f"{function} {pytree.tree_map(spelling, (args, kwargs))}"
    if key not in WORKSPACES:
        try:
            with unset_fake_temporarily(), without_modes(), torch.no_grad(), without_drawing():
                given, options = pytree.tree_map(real, (args, kwargs))
                function(*given, **options)  # what is allocated once and for all is not its workspace
                WORKSPACES[key] = measure(lambda: function(*given, **options))
        except FAILURES:
            WORKSPACES[key] = 0
    return WORKSPACES[key]


def measure(call: Callable[[], Any]) -> int:
    """The most that the allocator gave out meanwhile, beyond the result."""
    result: list[Any] = []
    most, left = allocated(lambda: result.append(call()))
    return most - left


def measure_on_cuda(call: Callable[[], Any]) -> int:
    call()  # whatever is allocated once and for all
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    torch.cuda.synchronize()
    most, held = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    del result
    return max(0, most - held)
