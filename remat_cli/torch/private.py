"""All that this package takes from torch's private parts, by what it is for.

Invariant: no other module here imports a private name of torch. Where one is gone, importing this module fails, and
the package steps aside (`aside.py`). What only some versions have is asked for by its name, never by a number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import distributed
from torch._dynamo import callback_handler as callback_handler
from torch._dynamo import disable as disable
from torch._dynamo import reset as reset
from torch._dynamo import trace_rules as trace_rules
from torch._dynamo.backends.common import aot_autograd as aot_autograd
from torch._dynamo.backends.registry import lookup_backend as lookup_backend
from torch._dynamo.exc import TorchDynamoException as TorchDynamoException
from torch._dynamo.utils import counters as counters
from torch._dynamo.utils import graph_break_reasons as graph_break_reasons
from torch._functorch import compile_utils, partitioners
from torch._functorch import config as of_functorch
from torch._functorch._aot_autograd.graph_compile import collect_bw_donated_buffer_idxs
from torch._guards import TracingContext
from torch._higher_order_ops.scan import generic_scan as generic_scan
from torch._inductor import codecache
from torch._inductor import compile_fx as compile_fx
from torch._inductor import config as of_inductor
from torch._inductor import graph as lowering
from torch._inductor import ir as ir
from torch._inductor.codegen.cpp import CppScheduling as CppScheduling
from torch._inductor.cpp_builder import CppBuilder as CppBuilder
from torch._inductor.custom_graph_pass import CustomPartitionerFn as CustomPartitionerFn
from torch._inductor.debug import DebugContext as DebugContext
from torch._inductor.graph import GraphLowering as GraphLowering
from torch._ops import HigherOrderOperator as HigherOrderOperator
from torch._ops import OpOverload as OpOverload
from torch._prims_common import is_contiguous_or_false as is_contiguous_or_false
from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
from torch._subclasses.fake_tensor import unset_fake_temporarily as unset_fake_temporarily
from torch.distributed import _composable_state as states
from torch.fx import graph as graphs
from torch.multiprocessing.reductions import StorageWeakRef as StorageWeakRef
from torch.utils import _python_dispatch as dispatch
from torch.utils._filelock import FileLock as FileLock

# AOTAutograd: joint graphs, their cleaning and their division into two
functorch_config: Any = of_functorch
fx_graph_cse = compile_utils.fx_graph_cse
extract = partitioners._extract_fwd_bwd_modules
partition_by_torch = partitioners.min_cut_rematerialization_partition
cleanup_recompute_tags = partitioners.cleanup_recompute_tags
must_recompute = partitioners.must_recompute
_is_opaque: Callable[[Any], bool] | None = getattr(partitioners, "is_opaque_node", None)

# Inductor's settings, and what stands for its compiler while its code is only looked at
inductor_config: Any = of_inductor
ASYNC_COMPILE = "torch._inductor.async_compile.AsyncCompile"
DONATED = "torch._inductor.graph.get_donated_idxs"
cpp_functions: Any = codecache.CppPythonBindingsCodeCache
LOCK_SECONDS: float = codecache.LOCK_TIMEOUT  # that torch waits for another process which compiles the same

# how ops are run: graphs that empty their arguments, no modes of others, bodies of higher-order ops
BoxedCodeGen = graphs._BoxedCodeGen
without_modes = dispatch._disable_current_modes
DENSE_KEY = torch._C.DispatchKey.CompositeExplicitAutograd

# whether a backward pass lets go of the gradients that it is given only at its end
HOLDS_TANGENTS = not hasattr(torch.autograd.Function, "boxed_grads_call")


def inductor_settings() -> str:
    """All of Inductor's settings on which the code that it writes may depend, but for the partitioner."""
    found = of_inductor.save_config_portable()
    return repr(sorted((name, repr(value)) for name, value in found.items() if name != "custom_partitioner_fn"))


def conditions(late: bool) -> tuple[Any, ...]:
    """All that Inductor's code for a graph depends on besides the graph: settings, threads, precision, and the saved
    values that a backward graph may write over."""
    return (
        inductor_settings(),
        lowering.get_donated_idxs() or [] if late else [],
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.backends.mkldnn.enabled,
    )


def donated(forward: Any, backward: Any, outputs: int) -> list[int]:
    """The places of what the backward graph is given that torch will let it write over. `outputs`: how many results
    the forward graph has before what it saves."""
    if not of_functorch.donated_buffer:
        return []
    saved = next(iter(forward.graph.find_nodes(op="output"))).args[0][outputs:]
    numbers = sum(not isinstance(node.meta.get("val"), torch.Tensor) for node in saved)
    about: Any = SimpleNamespace(
        num_forward=outputs,
        tensors_saved_for_backwards_slice=slice(outputs, outputs + len(saved) - numbers),
        num_symints_saved_for_bw=numbers,
    )
    return collect_bw_donated_buffer_idxs(forward, backward, about)


def behind(compiled: Any) -> Iterator[Any]:
    """What stands for the backend that torch.compile was given for a module or function, the outermost first; nothing
    for what was not compiled."""
    own = getattr(compiled, "_compiled_call_impl", None)  # of a module that is compiled in place
    if hasattr(compiled, "dynamo_ctx"):
        found = compiled.dynamo_ctx.callback
    elif own is not None:
        yield from behind(own)
        return
    else:
        code = getattr(compiled, "__code__", None)
        cells = zip(code.co_freevars if code else (), getattr(compiled, "__closure__", None) or (), strict=True)
        found = next((cell.cell_contents for name, cell in cells if name == "callback"), None)
    while found is not None:
        yield found
        found = getattr(found, "compiler_fn", None) or getattr(found, "_torchdynamo_orig_backend", None)


def hint_of(sizes: Any, length: Any) -> int:
    """How long Inductor takes something to be; older versions name that otherwise."""
    found = getattr(sizes, "optimization_hint", None) or sizes.size_hint
    return int(found(length))


def opaque_apart(nodes: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Saved nodes without those that are no tensors, and the argument for those: where torch takes both together there
    is none."""
    if _is_opaque is None:
        return nodes, {}
    opaque = [node for node in nodes if _is_opaque(node)]
    return [node for node in nodes if node not in opaque], {"saved_opaque_nodes": opaque}


def donate_nothing() -> None:
    """Withdraw torch's leave to write over saved values, which no op uses here: `retain_graph=True` is then allowed."""
    context = TracingContext.try_get()
    donated = getattr(context and context.fw_metadata, "bw_donated_idxs", None)
    if donated:
        donated.clear()


def at_the_end_of_backward(call: Callable[[], None]) -> None:
    """Have it called when the whole backward pass is over. Raises RuntimeError outside of the autograd engine."""
    torch.autograd.Variable._execution_engine.queue_callback(call)


# whether what autograd saved can be seen without a hook of the user's being run
SHOWS_SAVED = hasattr(torch._C._autograd.SavedTensor, "data")


def saved_by(node: Any) -> list[Any]:
    """What a node of an autograd graph saved, as it is kept: what a hook made of it, where there is one; nothing with
    versions that do not show it."""
    if not SHOWS_SAVED:
        return []
    kept = [getattr(node, name) for name in dir(node) if name.startswith("_raw_saved_")]
    each = [one for group in kept for one in (group if isinstance(group, (tuple, list)) else [group])]
    return [one.data for one in each]


def divided() -> bool:
    """Whether this process is one of several that torch.distributed brought together."""
    return distributed.is_available() and distributed.is_initialized()


def store_of_ranks() -> Any:
    """The key-value store with which the processes of torch.distributed found each other."""
    return distributed.distributed_c10d._get_default_store()


def modules_of_shards() -> list[Any]:
    """The living modules that `fully_shard` divided."""
    kind = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", ())
    return [module for module in list(states._module_state_mapping) if isinstance(module, kind)]


def state_of_shards(module: Any) -> Any:
    """What a module that `fully_shard` divided holds."""
    return module._get_fsdp_state()


def kinds_of_pipelines() -> tuple[tuple[type[Any], ...], tuple[type[Any], ...]]:
    """The classes of the stages of pipelines and of their schedules; none where no pipeline was made."""
    place = "torch.distributed.pipelining"
    stages, schedules = (sys.modules.get(f"{place}.{part}") for part in ("stage", "schedules"))
    if stages is None or schedules is None:
        return (), ()
    return (stages._PipelineStageBase,), (schedules._PipelineSchedule,)


def stages_of(schedule: Any) -> list[Any]:
    """The stages that a schedule runs on this rank."""
    return [*getattr(schedule, "_stages", ()), getattr(schedule, "_stage", None)]


def microbatches_of(schedule: Any) -> tuple[int, int]:
    """How many losses a schedule has of the microbatches of its step, and how many of these there are."""
    return len(schedule._internal_losses), int(schedule._n_microbatches)


def identity_of(storage: Any) -> int:
    """A number that no other living storage has."""
    return int(storage._cdata)
