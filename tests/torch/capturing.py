"""The joint graph of a module, as AOTAutograd hands it to a partitioner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from remat_cli.torch import joint as joints
from remat_cli.torch.backend import Backend
from remat_cli.torch.partition import Partitioner
from tests.torch.steps import backend

Captured = tuple[fx.GraphModule, Any, int]


class Capture(Partitioner):
    """Keeps each joint graph, and splits it as it would."""

    kept: list[Captured]

    def split(self, module, inputs, room, *, num_fwd_outputs, **given):  # type: ignore[no-untyped-def]
        self.kept.append((joints.copy_of(module), inputs, num_fwd_outputs))
        return super().split(module, inputs, room, num_fwd_outputs=num_fwd_outputs, **given)


def captured(module: Callable[..., Any], arguments: tuple[Any, ...]) -> Captured:
    """The only joint graph of a module or function, the inputs for a partitioner, and the number of forward outputs."""
    torch._dynamo.reset()
    whole = backend("100%").partitioner
    capture = Capture(whole.allowance, whole.pricing, whole.clock)
    capture.kept = []
    torch.compile(module, backend=Backend(capture), dynamic=False)(*arguments)
    torch._dynamo.reset()
    (found,) = capture.kept
    return found
