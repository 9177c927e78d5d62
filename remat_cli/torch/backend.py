"""`torch.compile(model, backend=remat_cli.torch.backend(budget="60%"))`: a training step, op by op, within a budget.

Invariant: the ops are those of eager, with their kernels; only which are run again, and when, is decided here.
"""

from __future__ import annotations

from typing import Any

from torch import fx
from torch._dynamo.backends.common import aot_autograd

from remat_cli.torch.partition import Partitioner, partition_fn
from remat_cli.torch.running import Compiled, Watch, op_by_op


class Backend:
    """What torch.compile is given. `partitioner.plans`: what became of each graph. `watch`: who looks on."""

    def __init__(self, partitioner: Partitioner) -> None:
        self.partitioner = partitioner
        self.watch = Watch()

    def __call__(self, module: Any, inputs: Any, **options: Any) -> Any:
        def compiled(graph: fx.GraphModule, _: Any) -> Compiled:
            return op_by_op(graph, self.watch)

        return aot_autograd(fw_compiler=compiled, bw_compiler=compiled, partition_fn=self.partitioner)(module, inputs)


def backend(budget: str | int, costs: str = "cpu", time_limit: float = 10.0) -> Backend:
    """A backend for torch.compile: no graph's step holds more than `budget` ("12GB", or a share as "60%")."""
    return Backend(partition_fn(budget, costs, time_limit))
