"""PyTorch beside it, on the same networks: eager, and checkpointed by block.

Invariant: a step is forward, loss and backward, gradients made anew. Memory is PyTorch's own count, which there is on a
GPU alone.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from examples.gpu.parts.models import Bench, Model
from examples.gpu.parts.networks import Made, network

LIMIT = 16_000_000_000


def pytorch(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """Eager and checkpointed at the usual batch, then the largest of each within the limit."""
    torch = prepared()
    batch = Model(bench, name).usual_batch
    for how in ("eager", "checkpoint"):
        net, made = network(torch, bench, name)
        if how == "checkpoint":
            checkpointed(torch, net)
        take_step = functools.partial(step, torch, net, made(batch))
        yield {how: {"batch": batch, **timed(torch, bench, take_step)}}
        del take_step
        if bench.device == "cuda":
            yield {f"{how}, largest": largest(torch, net, made, batch)}
        del net


def prepared() -> Any:
    import torch

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True  # as onnxruntime does
    torch.backends.cudnn.allow_tf32 = True
    return torch


def step(torch: Any, net: Any, given: dict[str, Any]) -> None:
    net.zero_grad(set_to_none=True)
    loss_of(torch, net(given["input"]), given["labels"]).backward()


def loss_of(torch: Any, logits: Any, labels: Any) -> Any:
    logits = getattr(logits, "logits", logits)
    if logits.dim() == 4:
        logits = logits.permute(0, 2, 3, 1)
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def timed(torch: Any, bench: Bench, take_step: Callable[[], None]) -> dict[str, Any]:
    """The median of its times, and what the allocator of a GPU says of them."""
    counted = bench.device == "cuda"
    for _ in range(3):
        take_step()
    if counted:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    times: list[float] = []
    end = time.perf_counter() + bench.seconds
    while len(times) < 3 or time.perf_counter() < end:
        begun = time.perf_counter()
        take_step()
        if counted:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    found: dict[str, Any] = {"ms": round(1e3 * statistics.median(times), 4)}
    if counted:
        found["allocated"] = torch.cuda.max_memory_allocated()
        found["requested"] = torch.cuda.memory_stats().get("requested_bytes.all.peak")
        found["reserved"] = torch.cuda.max_memory_reserved()
    return found


def largest(torch: Any, net: Any, made: Made, batch: int) -> dict[str, Any]:
    """The largest batch that runs where PyTorch may hold no more than the limit."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, LIMIT / total))
    low, high = 0, 4 * batch
    while runs(torch, net, made, high):
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if runs(torch, net, made, middle) else (low, middle)
    torch.cuda.set_per_process_memory_fraction(1.0)
    return {"batch": low, "fails_at": high}


def runs(torch: Any, net: Any, made: Made, batch: int) -> bool:
    torch.cuda.empty_cache()
    try:
        given = made(batch)
        for _ in range(2):
            step(torch, net, given)
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError:
        net.zero_grad(set_to_none=True)
        return False
    return True


def checkpointed(torch: Any, net: Any) -> None:
    """Each block's inside is computed again in the backward pass."""
    from torch.utils.checkpoint import checkpoint

    again = functools.partial(checkpoint, use_reentrant=False)
    for module in net.modules():
        if type(module).__name__ in ("Bottleneck", "Block", "GPT2Block", "BertLayer"):
            module.forward = functools.partial(again, module.forward)
