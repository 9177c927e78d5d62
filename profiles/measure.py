"""One op alone in onnxruntime: how long it takes and how much memory it takes besides its operands.

Invariant: a Timing is a median over undisturbed runs after warm-up; its spread is the half-width of the median's 95%
confidence interval over the median, from order statistics, so it assumes nothing about the noise.
"""

from __future__ import annotations

import math
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profiles.device import Device
from profiles.feeds import operands
from profiles.running import CannotRun, bind, failures, refusal, run, session, single
from profiles.signature import Signature

ENOUGH = 0.02  # a median known to 2% is known well enough
LEAST_RUNS, MOST_RUNS = 5, 1000


@dataclass(frozen=True, slots=True)
class Timing:
    """`ns`: the median; `spread`: relative, of the median; `workspace`: bytes held only while the op runs."""

    ns: int
    spread: float
    runs: int
    workspace: int = 0


def measure(signature: Signature, device: Device, seconds: float = 0.2) -> Timing:
    """Time one signature within about so many seconds; its workspace is `Bench`'s to find. Raises CannotRun."""
    if signature.opaque:
        raise CannotRun("it holds a subgraph, which reads values around it")
    try:
        content, feeds = single(signature, operands(signature))
        running = session(content, device)
        binding = bind(running, feeds, device)
        ns, spread, runs = sample(lambda: run(running, binding), seconds)
    except MemoryError as error:
        raise CannotRun("the host has too little memory for its operands", memory=True) from error
    except failures() as error:
        raise refusal(error) from error
    return Timing(ns, spread, runs)


def sample(once: Callable[[], None], seconds: float, least: int = LEAST_RUNS) -> tuple[int, float, int]:
    """The median time in ns, its spread, and the runs it took: until it is known to 2%, or the time is up."""
    begin = time.perf_counter()
    once()
    few = 2 if time.perf_counter() - begin > seconds else 3  # where the warm-up alone took all the time there was
    runs: list[tuple[int, int]] = []  # how often the run was interrupted, and its ns
    end = time.perf_counter() + seconds
    while len(runs) < MOST_RUNS:
        before, start = interruptions(), time.perf_counter_ns()
        once()
        took = time.perf_counter_ns() - start
        runs.append((interruptions() - before, took))
        if time.perf_counter() > end:
            if len(runs) >= few:
                break
        elif len(runs) >= least and len(runs) % 8 == 0 and spread_of(undisturbed(runs)) <= ENOUGH:
            break
    times = undisturbed(runs)
    return int(statistics.median(times)), spread_of(times), len(times)


def undisturbed(runs: Sequence[tuple[int, int]]) -> list[int]:
    """Times of the runs that nobody interrupted; if those are few, of the few fastest.

    A busy machine takes processors away in the middle of a run, and the op's other threads wait for that one: such a
    run can take five times as long and says nothing of the op.
    """
    clean = [took for interrupted, took in runs if not interrupted]
    if len(clean) >= LEAST_RUNS:
        return clean
    return sorted(took for _, took in runs)[:LEAST_RUNS]


def interruptions() -> int:
    """How often so far the system took a processor from one of our threads."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def spread_of(times: Sequence[int]) -> float:
    """Half the 95% confidence interval of the median, over the median: order statistics n/2 -+ 0.98 sqrt(n)."""
    ordered = sorted(times)
    reach = 0.98 * math.sqrt(len(ordered))
    low = max(0, math.floor(len(ordered) / 2 - reach))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + reach))
    return (ordered[high] - ordered[low]) / 2 / max(1.0, statistics.median(ordered))
