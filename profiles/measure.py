"""One op alone in onnxruntime: how long it takes and how much memory it takes besides its operands.

Invariant: a Timing is a median over runs after warm-up; its spread is the half-width of the median's 95% confidence
interval over the median, from order statistics, so it assumes nothing about the noise.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from profiles.device import Device
from profiles.feeds import operands
from profiles.running import CannotRun, bind, failures, refusal, run, session, single, traced
from profiles.signature import Signature

ENOUGH = 0.02  # a median known to 2% is known well enough
LEAST_RUNS, MOST_RUNS = 5, 2000
PADDING = 256  # the arena hands out multiples of this


@dataclass(frozen=True, slots=True)
class Timing:
    """`ns`: the median; `spread`: relative, of the median; `workspace`: bytes held only while the op runs."""

    ns: int
    spread: float
    runs: int
    workspace: int = 0


def measure(signature: Signature, device: Device, seconds: float = 0.2) -> Timing:
    """Time one signature within about so many seconds. Raises CannotRun."""
    if signature.opaque:
        raise CannotRun("it holds a subgraph, which reads values around it")
    try:
        content, feeds = single(signature, operands(signature))
        workspace = _workspace(signature, traced(content, feeds, device, runs=1))
        running = session(content, device)
        binding = bind(running, feeds, device)
        ns, spread, runs = sample(lambda: run(running, binding), seconds)
    except MemoryError as error:
        raise CannotRun("the host has too little memory for its operands", memory=True) from error
    except failures() as error:
        raise refusal(error) from error
    return Timing(ns, spread, runs, workspace)


def sample(once: Callable[[], None], seconds: float, least: int = LEAST_RUNS) -> tuple[int, float, int]:
    """The median time in ns, its spread, and the runs it took: until it is known to 2%, or the time is up."""
    once()
    times: list[int] = []
    end = time.perf_counter() + seconds
    while len(times) < MOST_RUNS:
        start = time.perf_counter_ns()
        once()
        times.append(time.perf_counter_ns() - start)
        late = time.perf_counter() > end
        if len(times) >= least and (late or (len(times) % 8 == 0 and spread_of(times) <= ENOUGH)):
            break
        if late and len(times) >= 3:
            break
    return int(statistics.median(times)), spread_of(times), len(times)


def spread_of(times: Sequence[int]) -> float:
    """Half the 95% confidence interval of the median, over the median: order statistics n/2 -+ 0.98 sqrt(n)."""
    ordered = sorted(times)
    reach = 0.98 * math.sqrt(len(ordered))
    low = max(0, math.floor(len(ordered) / 2 - reach))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + reach))
    return (ordered[high] - ordered[low]) / 2 / max(1.0, statistics.median(ordered))


def _workspace(signature: Signature, events: Sequence[Any]) -> int:
    """The arena's peak less what was there before and what the op leaves; operands bound from outside are not in it."""
    nodes = [event["args"] for event in events if event.get("cat") == "Node" and "mem_in_use_peak" in event["args"]]
    if not nodes:
        return 0
    before = int(nodes[0]["mem_bytes_in_use"]) - int(nodes[0]["mem_in_use_delta"])
    peak = max(int(node["mem_in_use_peak"]) for node in nodes)
    left = sum(math.ceil(tensor.bytes / PADDING) * PADDING for tensor in signature.made)
    return max(0, peak - before - left)
