"""The largest batch that trains within a limit through torch: eager, checkpointed by block, and under remat's budget.

Invariant: a batch counts only if two steps of it ran, with PyTorch's allocator held to the limit.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from examples.gpu.parts.models import Bench
from examples.gpu.parts.torch_networks import network
from examples.gpu.parts.torch_ways import compiled

LIMIT = 16_000_000_000
KEPT = 0.06  # of the limit is left to the allocator's gaps and to what libraries work in
FINE = 16  # a batch is found to this part of itself
SMALL = 4, 8  # batches tried on a CPU, which has no limit


def largest(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    import torch

    import remat_cli.torch

    def under(budget: str) -> Callable[[Any], Any]:
        own = remat_cli.torch.backend(budget, costs="h100", time_limit=bench.searching)
        return compiled(torch, backend=own)

    budget = f"{round((1 - KEPT) * LIMIT)}" if bench.device == "cuda" else "60%"
    ways: dict[str, tuple[Callable[[], Any], bool]] = {
        "eager": (lambda: lambda module: module, False),
        f"remat, {budget}": (partial(under, budget), False),
        "checkpoint by block": (lambda: lambda module: module, True),
    }
    for said, (way, by_block) in ways.items():
        runs = partial(_runs, torch, bench, name, way, by_block)
        batch, rate = _small(runs) if bench.device != "cuda" else _found(torch, runs)
        yield {said: {"batch": batch, "sequences_per_second": rate}}


def _small(runs: Callable[[int], float | None]) -> tuple[int, float | None]:
    return SMALL[-1], [runs(batch) for batch in SMALL][-1]


def _found(torch: Any, runs: Callable[[int], float | None]) -> tuple[int, float | None]:
    """By doubling, then by halves."""
    torch.cuda.set_per_process_memory_fraction(min(1.0, LIMIT / torch.cuda.get_device_properties(0).total_memory))
    low, best, high = 0, None, 4
    while (rate := runs(high)) is not None:
        low, best, high = high, rate, 2 * high
    while high - low > max(1, low // FINE):
        middle = (low + high) // 2
        if (rate := runs(middle)) is None:
            high = middle
        else:
            low, best = middle, rate
    torch.cuda.set_per_process_memory_fraction(1.0)
    return low, best


def _runs(torch: Any, bench: Bench, name: str, way: Callable[[], Any], by_block: bool, batch: int) -> float | None:
    """Sequences a second, or None where memory was out."""
    torch._dynamo.reset()
    gc.collect()
    if bench.device == "cuda":
        torch.cuda.empty_cache()
    module, made = network(torch, name, bench.small, bench.device)
    module.by_block = by_block
    try:
        run, given = way()(module), made(batch)
        taken = 0.0
        for _ in range(3):
            begun = time.perf_counter()
            module.zero_grad(set_to_none=True)
            run(*given).backward()
            if bench.device == "cuda":
                torch.cuda.synchronize()
            taken = time.perf_counter() - begun
    except torch.OutOfMemoryError:
        return None
    return round(batch / taken, 3)
