"""What DistributedDataParallel and `fully_shard` hold of a module beside its graphs: the buckets of gradients; shards,
gathered weights, and gradients that are on their way.

Invariant: nothing of theirs is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import distributed, nn

from remat_cli.torch.beside import living
from remat_cli.torch.metering import Meter
from remat_cli.torch.private import state_of_shards

SHARDING = "torch.distributed.fsdp"  # where the classes live that hold shards


def bucket_bytes(given: Sequence[Any]) -> int:
    """The bytes of the buckets in which DistributedDataParallel gathers the gradients of these parameters."""
    if not distributed.is_available() or not distributed.is_initialized():
        return 0
    wrappers = living(nn.parallel.DistributedDataParallel)
    reduced = {id(p): p.nbytes for one in wrappers for p in one.module.parameters() if p.requires_grad}
    return sum(reduced.pop(id(tensor), 0) for tensor in given)


def sharded(given: Sequence[Any]) -> list[Any]:
    """The states of the modules that `fully_shard` divided and whose weights are among these tensors. Each leads to the
    others of its tree."""
    if not distributed.is_available() or not distributed.is_initialized():
        return []
    states = [state_of_shards(one) for one in living(distributed.fsdp.FSDPModule)]
    return [state for state in states if Meter(given).part(held_by([state]))]


def held_by(states: Sequence[Any]) -> list[torch.Tensor]:
    """The tensors that they hold now, those among them whose memory is given back for a while."""
    found: list[torch.Tensor] = []
    seen: dict[int, Any] = {}  # what was looked at, which must live as long as its number counts
    stack: list[Any] = list(states)
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            found.append(getattr(value, "_local_tensor", value))
            if value.is_leaf and value.grad is not None:
                stack.append(value.grad)
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            stack.extend(value)
        elif type(value).__module__.startswith(SHARDING) and not isinstance(value, nn.Module):
            stack.append(getattr(value, "__dict__", {}))
    return found
