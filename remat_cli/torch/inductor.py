"""`torch._inductor.config.custom_partitioner_fn = remat_cli.torch.partitioner(budget="60%")`: a plan for Inductor.

Invariant: `uuid` changes with all that a partition depends on besides the graph, so that Inductor's caches never hand
out another's. The peak is foretold by a model of what Inductor fuses (`fusing.py`), not exact.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._inductor.custom_graph_pass import CustomPartitionerFn

from remat_cli.torch.building import Split
from remat_cli.torch.partition import Partitioner, partition_fn

OURS = ("remat_cli/torch", "solvers", "profiles")


class InductorPartitioner(CustomPartitionerFn):
    """What Inductor's configuration takes. `partitioner.plans`: what became of each graph."""

    def __init__(self, partitioner: Partitioner, asked: str) -> None:
        self.partitioner = partitioner
        self.asked = asked

    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **given: Any) -> Split:
        return self.partitioner(gm, joint_inputs, **given)

    def __deepcopy__(self, _: Any) -> InductorPartitioner:
        """Inductor copies its configuration; plans are of the one that the user holds."""
        return self

    def uuid(self) -> str:
        return hashlib.sha256(f"{self.asked} {torch.__version__} {_sources()}".encode()).hexdigest()


def partitioner(budget: str | int, time_limit: float = 10.0) -> InductorPartitioner:
    """A partitioner for Inductor: the peak of what it compiles is near `budget`, as far as its fusions are foretold."""
    inner = partition_fn(budget, "cpu", time_limit)
    inner.fused = True
    return InductorPartitioner(inner, f"{budget} {time_limit}")


def _sources() -> str:
    """A digest of the code that makes plans."""
    digest, root = hashlib.sha256(), Path(__file__).parents[2]
    for folder in OURS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".hpp", ".cpp", ".yaml"):
                digest.update(path.read_bytes())
    return digest.hexdigest()
