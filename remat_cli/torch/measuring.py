"""Costs of ops on this device, measured once for each signature and kept in a cost file.

Invariant: an op with an effect is never run for its price. Measuring draws nothing from the user's random numbers. An
op that cannot be measured is estimated, and the file says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.profiler import ProfilerActivity, profile
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from profiles.costfile import dump, load
from profiles.costs import BadCosts, Costs, OpCost
from profiles.place import kept
from remat_cli.formats.files import write_whole
from remat_cli.torch.lowering import Price, Pricing
from remat_cli.torch.reading import bytes_of, has_effect, is_plain, is_view, tensors_of

RUNS = 5  # at least
ENOUGH_SECONDS = 0.02  # seconds of one op's runs
NO_TRACE_LINES = "6"  # a level without the two lines that the profiler of torch 2.13 prints at each start
WORKSPACES: dict[str, int] = {}  # signature -> bytes, of this process
WITHOUT_WORKSPACE = {torch.ops.aten.empty_strided, torch.ops.aten.empty, torch.ops.aten.as_strided}
FAILURES = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AssertionError)


@dataclass(slots=True)
class MeasuredPrices:
    """Prices by measurement; `estimate` is for what cannot be run. Call `save` when a graph is priced."""

    estimate: Pricing
    place: Path
    known: dict[str, OpCost] = field(default_factory=dict)
    new: bool = False

    def __call__(self, op: fx.Node) -> Price:
        if is_plain(op) or is_view(op):
            return Price(0)
        key = signature(op)
        if key not in self.known:
            self.known[key] = self.measure(op)
            self.new = True
        return Price(self.known[key].ns, self.known[key].workspace)

    def measure(self, op: fx.Node) -> OpCost:
        if has_effect(op) or not isinstance(op.target, torch._ops.OpOverload):
            return OpCost(self.estimate(op).ns, how="estimated")
        try:
            with ExitStack() as stack:
                for context in (unset_fake_temporarily(), _disable_current_modes(), torch.no_grad()):
                    stack.enter_context(context)
                stack.enter_context(torch.random.fork_rng())
                return _run(op)
        except FAILURES as error:
            return OpCost(
                self.estimate(op).ns, how="estimated", note=str(error).splitlines()[0][:80] if str(error) else ""
            )

    def save(self) -> None:
        if self.new:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.place, dump(Costs("torch", "", {}, {"name": self.place.name}, self.known)))
            self.new = False


def measured(estimate: Pricing, place: Path | None = None) -> MeasuredPrices:
    """Prices measured on this device with this torch and this many threads, those that are known among them."""
    place = place or kept("torch") / f"{_device()}.costs.yaml"
    known: dict[str, OpCost] = {}
    if place.is_file():
        with suppress(BadCosts):  # a bad file is written anew
            known = dict(load(place).ops)
    return MeasuredPrices(estimate, place, known)


def signature(op: fx.Node) -> str:
    """The function and all that its time depends on: sizes, strides and types, and arguments that are no tensors."""
    given = fx.node.map_arg((op.args, op.kwargs), lambda node: _Spelled(_spelling(node.meta.get("val"))))
    return f"{op.target} {given!r}"


class _Spelled(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _spelling(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        size = "x".join(str(bytes_of(length)) for length in value.shape)
        stride = ",".join(str(bytes_of(length)) for length in value.stride())
        return f"{str(value.dtype).removeprefix('torch.')}[{size};{stride}]{value.device.type}"
    return str([_spelling(part) for part in value]) if isinstance(value, (tuple, list)) else str(value)


def _run(op: fx.Node) -> OpCost:
    def call() -> Any:
        return op.target(*arguments, **options)

    arguments, options = fx.node.map_arg(
        (op.args, op.kwargs), lambda node: pytree.tree_map(_real, node.meta.get("val"))
    )
    on_cuda = any(tensor.is_cuda for tensor in tensors_of([arguments, options, op.meta.get("val")]))
    workspace = _workspace_on_cuda(call) if on_cuda else _workspace(call)
    times: list[int] = []
    while len(times) < RUNS or (sum(times) < ENOUGH_SECONDS * 1e9 and len(times) < 20 * RUNS):
        began = time.perf_counter_ns()
        result = call()
        if on_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter_ns() - began)
        del result
    middle = sorted(times)[len(times) // 2]
    return OpCost(middle, workspace, runs=len(times), spread=round(middle / min(times) - 1, 3))


def _real(value: Any) -> Any:
    """A tensor with numbers in it that every op takes: zeros where they may be places, small ones otherwise."""
    if isinstance(value, torch.Tensor):
        sizes, strides = [bytes_of(n) for n in value.shape], [bytes_of(n) for n in value.stride()]
        made = torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
        return made.uniform_(0.1, 1) if value.dtype.is_floating_point and value.dtype.itemsize > 1 else made.zero_()
    return bytes_of(value) if isinstance(value, torch.SymInt) else value


def workspace_of(function: Any, args: Any, kwargs: Any) -> int:
    """The bytes that an op works in beside its result, given tensors without data; measured once for each signature."""
    if not isinstance(function, torch._ops.OpOverload) or function.namespace != "aten":
        return 0
    if function.overloadpacket in WITHOUT_WORKSPACE or function.is_view:
        return 0
    key = f"{function} {pytree.tree_map(_spelling, (args, kwargs))}"
    if key not in WORKSPACES:
        try:
            with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad(), torch.random.fork_rng():
                real, options = pytree.tree_map(_real, (args, kwargs))
                function(*real, **options)  # what is allocated once and for all is not its workspace
                WORKSPACES[key] = _workspace(lambda: function(*real, **options))
        except FAILURES:
            WORKSPACES[key] = 0
    return WORKSPACES[key]


def _workspace(call: Callable[[], Any]) -> int:
    """The most that the allocator gave out meanwhile, beyond the result."""
    os.environ.setdefault("KINETO_LOG_LEVEL", NO_TRACE_LINES)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        result = call()
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    del result
    return max(0, most - max(now, 0))


def _workspace_on_cuda(call: Callable[[], Any]) -> int:
    call()  # whatever is allocated once and for all
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    result = call()
    torch.cuda.synchronize()
    most, held = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    del result
    return max(0, most - held)


def _device() -> str:
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return f"{name.replace(' ', '-')}-{torch.get_num_threads()}-{torch.__version__}"
