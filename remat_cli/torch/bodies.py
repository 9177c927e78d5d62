"""What a higher-order op holds while it runs: the bodies of `torch.cond`, `scan`, `while_loop`, `map` and the like.

Their dense implementations run under a mode that tells a meter of each op inside: with tensors that have no data for a
problem's workspace, and with the real ones where a step is metered.

Invariant: a body runs as it does without the mode, on the same arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from remat_cli.errors import RematWarning
from remat_cli.torch.metering import Meter
from remat_cli.torch.private import (
    DENSE_KEY,
    FakeTensor,
    FakeTensorMode,
    HigherOrderOperator,
    generic_scan,
    without_modes,
)
from remat_cli.torch.reading import attribute, bytes_of

ROUNDS = 3  # of a loop whose end depends on data: each later one holds what the second does


class Inside(TorchDispatchMode):
    """Tells a meter of the result of each op, those in bodies of higher-order ops among them."""

    supports_higher_order_operators = True

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if isinstance(func, HigherOrderOperator) and func.name() in RUN:
            with self:
                result = RUN[func.name()](func, *args, **(kwargs or {}))
        else:
            result = func(*args, **(kwargs or {}))
        self.meter.made(result)
        return result


def watching(op: fx.Node, meter: Meter) -> AbstractContextManager[Any]:
    """Within it, a run of the op tells the meter of what its bodies hold."""
    return Inside(meter) if _has_bodies(op) else nullcontext()


def held_inside(op: fx.Node) -> int:
    """The most bytes that the op's bodies hold at once, beside its arguments and its result."""
    if not _has_bodies(op):
        return 0
    try:
        with without_modes(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            given = fx.node.map_arg((op.args, op.kwargs), _argument)
            arguments, options = _shorter(op, *pytree.tree_map(without_data, given))
            meter = Meter([arguments, options])
            with Inside(meter):
                result = op.target(*arguments, **options)
            meter.made(result)
            return meter.peak - meter.count()
    except Exception as error:  # noqa: BLE001  torch's own code, on tensors without data: the training goes on
        text = f"remat: what the bodies of '{op.name}' hold is not counted ({type(error).__name__}: {error})"
        warnings.warn(text.splitlines()[0], RematWarning, stacklevel=2)
        return 0


def without_data(value: Any) -> Any:
    """A tensor of the same form; call it where tensors have no data. A symbolic size is that of the inputs at hand."""
    if isinstance(value, torch.Tensor):
        sizes, strides = [bytes_of(n) for n in value.shape], [bytes_of(n) for n in value.stride()]
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
    return bytes_of(value) if isinstance(value, torch.SymInt) else value


def _has_bodies(op: fx.Node) -> bool:
    return isinstance(op.target, HigherOrderOperator) and op.target.name() in RUN


def _argument(node: fx.Node) -> Any:
    if node.op == "get_attr":
        return attribute(node.graph.owning_module, str(node.target))
    return node.meta["val"]


def _shorter(op: fx.Node, arguments: Any, options: Any) -> tuple[Any, Any]:
    """A scan over a few rows holds the same, beside its result, as one over all of them."""
    if op.target.name() != "scan":
        return arguments, options
    body, start, rows, *rest = arguments
    return (body, start, [tensor.narrow(0, 0, min(ROUNDS, len(tensor))) for tensor in rows], *rest), options


def _cond(_: Any, chosen: Any, first: Callable[..., Any], second: Callable[..., Any], operands: Any) -> Any:
    if isinstance(chosen, FakeTensor):  # either may run
        first(*operands)
        return second(*operands)
    return (first if chosen else second)(*operands)


def _while(op: Any, go_on: Callable[..., Any], body: Callable[..., Any], carried: Any, given: Any) -> Any:
    rounds = 0
    seen: list[Any] = []  # the last answer, which the loop holds while the body runs

    def judged(*arguments: Any) -> Any:
        nonlocal rounds
        rounds += 1
        seen[:] = [go_on(*arguments)]
        return rounds < ROUNDS if isinstance(seen[0], FakeTensor) else seen[0]

    return op.py_kernels[DENSE_KEY](judged, body, carried, given)


def _scan(_: Any, body: Callable[..., Any], start: Any, rows: Any, given: Any) -> Any:
    return generic_scan(body, start, rows, additional_inputs=given)


def _called(_: Any, body: Callable[..., Any], name: str, *operands: Any) -> Any:
    return body(*operands)


def _dense(op: Any, *arguments: Any, **options: Any) -> Any:
    return op.py_kernels[DENSE_KEY](*arguments, **options)


# how each runs where a mode is on: some of torch's dense implementations refuse that
RUN: dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while,
    "scan": _scan,
    "invoke_subgraph": _called,
    "map_impl": _dense,
    "associative_scan": _dense,
    "flex_attention": _dense,
    "flex_attention_backward": _dense,
}
