"""Costs of ops on this device, measured once for each signature and kept in a cost file.

Invariant: an op with an effect is never run for its price. Measuring draws nothing from the user's random numbers. An
op that cannot be measured is estimated, and the file says so.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from profiles.costfile import dump, load
from profiles.costs import BadCosts, Costs, OpCost
from profiles.place import kept
from remat_cli.formats.files import write_whole
from remat_cli.torch.lowering import Price, Pricing
from remat_cli.torch.private import OpOverload, unset_fake_temporarily, without_modes
from remat_cli.torch.reading import has_effect, is_plain, is_view, tensors_of
from remat_cli.torch.workspaces import (
    FAILURES,
    Spelled,
    measure,
    measure_on_cuda,
    real,
    spelling,
    without_drawing,
)

RUNS = 5  # at least
ENOUGH_SECONDS = 0.02  # seconds of one op's runs


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
        if has_effect(op) or not isinstance(op.target, OpOverload):
            return OpCost(self.estimate(op).ns, how="estimated")
        try:
            with ExitStack() as stack:
                for context in (unset_fake_temporarily(), without_modes(), torch.no_grad(), without_drawing()):
                    stack.enter_context(context)
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
    given = fx.node.map_arg((op.args, op.kwargs), lambda node: Spelled(spelling(node.meta.get("val"))))
    return f"{op.target} {given!r}"


def _run(op: fx.Node) -> OpCost:
    def call() -> Any:
        return op.target(*arguments, **options)

    arguments, options = fx.node.map_arg((op.args, op.kwargs), lambda node: pytree.tree_map(real, node.meta.get("val")))
    on_cuda = any(tensor.is_cuda for tensor in tensors_of([arguments, options, op.meta.get("val")]))
    workspace = measure_on_cuda(call) if on_cuda else measure(call)
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


def _device() -> str:
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return f"{name.replace(' ', '-')}-{torch.get_num_threads()}-{torch.__version__}"
