"""What DistributedDataParallel, `fully_shard` and pipelines hold of a module beside its graphs: the buckets of
gradients; shards, gathered weights, and gradients that are on their way; what stages send, receive and return.

Invariant: nothing of theirs is changed.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from remat_cli.torch.beside import living
from remat_cli.torch.metering import Meter
from remat_cli.torch.private import (
    behind,
    divided,
    kinds_of_pipelines,
    microbatches_of,
    modules_of_shards,
    stages_of,
    state_of_shards,
    trace_rules,
)

HOLDING = ("torch.distributed.fsdp", "torch.distributed.pipelining")  # where the classes live that hold tensors
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def wrappers() -> weakref.WeakSet[Any]:
    """The modules that gather gradients in buckets."""
    return weakref.WeakSet(living(nn.parallel.DistributedDataParallel) if divided() else ())


def bucket_bytes(wrappers: Iterable[Any], given: Meter) -> int:
    """The bytes of the buckets in which these gather the gradients of parameters among those given."""
    reduced = {id(p): p for one in wrappers for p in one.module.parameters() if p.requires_grad}
    return sum(p.nbytes for p in reduced.values() if given.knows(p))


def around(given: Sequence[Any]) -> list[Any]:
    """What divides the weights among these tensors among ranks: the states of modules that `fully_shard` divided, each
    of which leads to the others of its tree, and the stages of pipelines with their schedules."""
    if not divided():
        return []
    meter = Meter(given)
    states = [state_of_shards(one) for one in _shards()]
    found = [state for state in states if meter.part(held_by([state]))]
    stages, schedules = ([one for kind in kinds for one in living(kind)] for kinds in kinds_of_pipelines())
    own = [stage for stage in stages if meter.part(list(stage.submod.parameters()))]
    return [*found, *own, *(one for one in schedules if any(stage in own for stage in stages_of(one)))]


def under_way(holding: Sequence[Any]) -> bool:
    """Whether the step of a pipeline goes on, also where nothing waits on this rank: on its last stage each microbatch
    may be over before the next one comes."""
    _, kinds = kinds_of_pipelines()
    found = [microbatches_of(one) for one in holding if isinstance(one, kinds)]
    return any(0 < passed < count for passed, count in found)


def shards_of_torchs_own() -> list[str]:
    """The classes of layers of torch in modules that `fully_shard` divided: their code is not compiled by itself."""
    return _names(_shards())


def shards_in_place(backends: Sequence[Any], name: str) -> list[str]:
    """The same of those alone that were compiled in place with these backends, or by the name."""
    return _names(_in_place(_shards(), backends, name))


def torchs_own_in_place(backend: Any, name: str) -> list[str]:
    """The same of modules that are not divided."""
    shards = {id(one) for one in _shards()}
    return _names([one for one in _in_place(living(nn.Module), [backend], name) if id(one) not in shards])


def _in_place(modules: Sequence[Any], backends: Sequence[Any], name: str) -> list[Any]:
    def ours(found: Any) -> bool:
        return getattr(found, "compiler_name", "") == name or any(found is one for one in backends)

    return [one for one in modules if one._compiled_call_impl is not None and any(map(ours, behind(one)))]


def _names(modules: Sequence[Any]) -> list[str]:
    """The classes of the layers of torch in these that run in eager."""
    asked = [one for one in modules if "forward" not in vars(one)]
    return sorted({name for one in asked for name in _layers(one)})


def _shards() -> list[Any]:
    return modules_of_shards() if divided() else []


def _layers(module: nn.Module) -> list[str]:
    """The layers of torch that are called outside of what the user wrote: of a container those in it, or itself where
    there are no others."""
    if isinstance(module, nn.Identity):
        return []
    if isinstance(module, CONTAINERS) and not all(map(_torchs_own, module.children())):
        return [name for child in module.children() for name in _layers(child)]
    kind = type(module)
    own = kind.__bases__[-1] if kind.__module__.startswith(HOLDING) else kind  # `fully_shard` makes a class of its own
    return [own.__name__] if _torchs_own(module) else []


def _torchs_own(module: nn.Module) -> bool:
    """Whether it computes in code of torch; a container as far as the modules in it do."""
    if isinstance(module, CONTAINERS):
        return any(map(_torchs_own, module.children()))
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code is not None and trace_rules.check_file(code.co_filename).skipped


def named(holding: Sequence[Any]) -> str:
    """What is said of those that hold tensors beside the graphs."""
    if not holding:
        return ""
    pipes = [type(one).__module__.startswith(HOLDING[1]) for one in holding]
    names = [*(["fully_shard"] if not all(pipes) else []), *(["the pipeline"] if any(pipes) else [])]
    return f" with what {' and '.join(names)} holds"


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
        elif type(value).__module__.startswith(HOLDING) and not isinstance(value, nn.Module):
            stack.append(getattr(value, "__dict__", {}))
    return found
