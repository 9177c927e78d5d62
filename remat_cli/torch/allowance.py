"""The user's memory limit: bytes, a share of what the step holds as written, or the free memory of the device.

Invariant: memory held besides the graphs, such as an optimizer's state, counts towards the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import torch

from remat_cli.model.quantities import Budget, parse_budget
from remat_cli.torch.beside import Beside, bytes_beside, state_to_come
from remat_cli.torch.device_memory import usable_bytes
from remat_cli.torch.lowering import Lowered
from remat_cli.torch.metering import Meter
from remat_cli.torch.reading import tensors_of
from remat_cli.torch.sharing import GraphRoom
from remat_cli.torch.wrapped import bucket_bytes, wrappers
from solvers.schedule import baseline

FIT = "fit"


@dataclass(slots=True)
class Allowance:
    """`budget`: None for the device's free memory. `beside`: bytes that others hold throughout. `earlier`: the most
    bytes of gradients that a step was seen to begin with, as where they are accumulated. `given`: what graphs
    are given, weights among it. `buckets`: the bytes in which `wrappers` gather the gradients of these
    weights. `told`: the user said what is held besides."""

    budget: Budget | None
    beside: int = 0
    earlier: int = 0
    given: Meter = field(default_factory=Meter, compare=False)
    buckets: int = 0
    wrappers: WeakSet[Any] = field(default_factory=WeakSet, compare=False)
    told: bool = False
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def look_ahead(self, given: Sequence[Any]) -> None:
        """Leave room for the buckets of these tensors' gradients, and for what optimizers of them will hold, where
        nobody said what is held besides."""
        self.wrappers = wrappers()
        self.look_at_buckets(given)
        if self.budget is None and not self.told:
            self.beside = state_to_come(given)

    def look_at_buckets(self, given: Sequence[Any]) -> None:
        """Count the buckets of all weights that graphs are given. A graph may be compiled with tensors that stand for
        the weights; a run has those themselves."""
        self.given.watch(given)
        self.buckets = bucket_bytes(self.wrappers, self.given)

    def bytes(self, whole: int, held: int, apart: int = 0) -> int:
        """The limit for graphs that hold `whole` bytes as written, `held` of which are there already, as `apart` is,
        which other graphs hold."""
        others = self.beside + self.earlier + self.buckets
        if self.budget is None:
            return usable_bytes(self.device) + held - others
        others += apart
        return self.budget.bytes(whole + others) - others

    def room(self, lowered: Lowered, apart: int = 0) -> GraphRoom:
        """The limit for a graph that has the whole allowance for itself, but for `apart`."""
        self.device = device_of(lowered)
        return GraphRoom(self.bytes(baseline(lowered.as_written.problem)[1].peak, lowered.problem.resident, apart))


def allowance_of(budget: str | int, beside: Beside = 0) -> Allowance:
    """The allowance that `budget` means. Raises ValueError that names the possible forms."""
    if budget == FIT:
        held = isinstance(beside, torch.optim.Optimizer) and len(beside.state) > 0
        return Allowance(None, 0 if held else bytes_beside(beside), told=beside != 0)
    return Allowance(parse_budget(str(budget)), bytes_beside(beside))


def device_of(lowered: Lowered) -> torch.device:
    """The device of the graph's tensors: an accelerator if any tensor is there."""
    given = lowered.joint.module.graph.find_nodes(op="placeholder")
    devices = [tensor.device for node in given for tensor in tensors_of(node.meta.get("val"))]
    return next((device for device in devices if device.type != "cpu"), torch.device("cpu"))
