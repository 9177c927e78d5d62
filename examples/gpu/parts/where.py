"""Where the time of a step goes, op by op beside eager: kernels, launches, what takes longer; and CUDA graphs.

Invariant: figures are torch's profiler's, of one step after others; times of whole steps are taken without it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from examples.gpu.parts.models import Bench
from examples.gpu.parts.torch_networks import network
from examples.gpu.parts.torch_ways import WARM, compiled

MOST_NAMED = 12
BUDGET = "70%"


def gone(bench: Bench, name: str) -> Iterator[dict[str, Any]]:
    """Eager, torch's own partition op by op, remat's plan op by op."""
    import torch

    import remat_cli.torch
    from examples.gpu.parts.trained import torchs_partitions

    made, batch = network(torch, name, bench.small, bench.device, dropout=False)
    given = batch()
    own = remat_cli.torch.backend(BUDGET, costs="h100", time_limit=bench.searching)
    ways = {
        "eager": lambda: made,
        "torch, op by op": lambda: compiled(torch, backend=torchs_partitions())(made),
        f"remat, {BUDGET}": lambda: compiled(torch, backend=own)(made),
    }
    for said, way in ways.items():
        torch._dynamo.reset()
        run = way()

        def step(run: Callable[..., Any] = run) -> None:
            made.zero_grad(set_to_none=True)
            run(*given).backward()

        for _ in range(WARM):
            step()
        yield {said: {**_whole(torch, bench, step), **_profiled(torch, bench, step)}}
        if bench.device == "cuda":
            yield {f"{said}, as a CUDA graph": _graphed(torch, bench, step)}


def _whole(torch: Any, bench: Bench, step: Callable[[], None]) -> dict[str, Any]:
    """Milliseconds of a step, and until its last launch: if these are as long, the host is what is waited for."""
    times, launched, end = list[float](), list[float](), time.perf_counter() + bench.seconds
    while len(times) < WARM or time.perf_counter() < end:
        begun = time.perf_counter()
        step()
        launched.append(time.perf_counter() - begun)
        if bench.device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return {name: round(1e3 * statistics.median(all_), 3) for name, all_ in (("ms", times), ("host_ms", launched))}


def _profiled(torch: Any, bench: Bench, step: Callable[[], None]) -> dict[str, Any]:
    from torch.profiler import ProfilerActivity, profile

    cuda = bench.device == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as seen:
        step()
        if cuda:
            torch.cuda.synchronize()

    def own(event: Any) -> float:
        return float(event.self_device_time_total if cuda else event.self_cpu_time_total)

    events = seen.key_averages()
    ops = sorted((event for event in events if event.key.startswith("aten::") and own(event)), key=own, reverse=True)
    launches = sum(event.count for event in events if "LaunchKernel" in event.key)
    return {
        "ops": sum(event.count for event in events if event.key.startswith("aten::")),
        "launches": launches,
        "device_ms": round(sum(map(own, ops)) / 1e3, 3),
        "most": [[event.key, event.count, round(own(event) / 1e3, 3)] for event in ops[:MOST_NAMED]],
    }


def _graphed(torch: Any, bench: Bench, step: Callable[[], None]) -> dict[str, Any]:
    """The whole step recorded once and played again, or in which words that failed."""
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    try:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                step()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            step()
    except RuntimeError as error:
        return {"failed": str(error)[-300:]}
    return _whole(torch, bench, graph.replay)
