"""Runs one op alone in onnxruntime: its time, and its memory besides its operands.

Invariant: a Timing is a median over undisturbed runs after warm-up, or says how much its threads waited. Its spread is
the half-width of the median's 95% confidence interval over the median, from order statistics, so it assumes nothing
about the noise.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from profiles.device import Device
from profiles.feeds import operands
from profiles.running import CannotRun, bind, chain, events, failures, refusal, run, session, single
from profiles.signature import OpSignature
from profiles.stopwatch import Waiting, lap, works_alone
from profiles.system import interruptions

BUSY = 0.1  # with this share of waiting for a processor, figures are doubtful
ENOUGH = 0.02  # a median known to 2% is exact enough
LEAST_RUNS, MOST_RUNS = 5, 1000
CHAINS = (1, 17)  # numbers of tiny ops in a row
CHAIN_ROUNDS, CHAIN_RUNS = 16, 50
FEW = 3  # runs that are made even where LEAST_RUNS would take too long


@dataclass(frozen=True, slots=True)
class Timing:
    """`ns`: the median; `spread`: relative to the median; `workspace`: bytes held only while the op runs.

    `waited`: the share of the time that its threads waited for a processor, where hardly a run was uninterrupted. It
    counts even for one thread, whose waiting is not in `ns`, because others leave caches cold.
    """

    ns: int
    spread: float
    runs: int
    workspace: int = 0
    waited: float = 0.0


Seen = tuple[Timing, int, int]  # a timing, the bytes in the arena before the op, and those at its peak


def measure(signature: OpSignature, device: Device, seconds: float, watched: bool = True) -> Seen:
    """Run one signature for about so many seconds. Raises CannotRun.

    The first run is the warm-up; if `watched`, onnxruntime traces it for what its arena held. The others run untraced.
    """
    if signature.opaque:
        raise CannotRun("it holds a subgraph, which reads values around it")
    try:
        content, feeds = single(signature, operands(signature))
        with tempfile.TemporaryDirectory(prefix="remat-") if watched else nullcontext() as scratch:
            trace = Path(scratch) / "trace" if scratch else None
            running = session(content, device, trace, shared_arena=device.kind == "cpu")
            binding = bind(running, feeds, device)
            warmed = _seconds(lambda: run(running, binding))
            before, peak = _arena(events(running)) if watched else (0, 0)
        timing = sample(lambda: run(running, binding), seconds, works_alone(device), FEW - (warmed > seconds))
    except MemoryError as error:
        raise CannotRun("the host has too little memory for its operands", memory=True) from error
    except failures() as error:
        raise refusal(error) from error
    return timing, before, peak


def session_ns(device: Device) -> int:
    """The time of one run of a session before its first op, by chains of tiny ops."""
    runs = []
    for count in CHAINS:
        content, feeds = chain(count)
        running = session(content, device)
        binding = bind(running, feeds, device)
        runs.append(partial(run, running, binding))
    alone = works_alone(device)
    rounds = [[_quick(once, alone) for once in runs] for _ in range(CHAIN_ROUNDS)]
    short, long = (min(found) for found in zip(*rounds, strict=True))
    return max(0, round(short - CHAINS[0] * (long - short) / (CHAINS[1] - CHAINS[0])))


def _quick(once: Callable[[], None], alone: bool) -> float:
    return statistics.median(lap(once, alone) for _ in range(CHAIN_RUNS))


def _arena(events: Sequence[Any]) -> tuple[int, int]:
    """Bytes in the arena before the op, and at its peak."""
    nodes = [event["args"] for event in events if event.get("cat") == "Node" and "mem_in_use_peak" in event["args"]]
    if not nodes:
        return 0, 0
    before = int(nodes[0]["mem_bytes_in_use"]) - int(nodes[0]["mem_in_use_delta"])
    return before, max(int(node["mem_in_use_peak"]) for node in nodes)


def _seconds(once: Callable[[], None]) -> float:
    begin = time.perf_counter()
    once()
    return time.perf_counter() - begin


def sample(once: Callable[[], None], seconds: float, alone: bool = False, few: int = FEW) -> Timing:
    """The median time in ns, its spread, and the number of runs: until it is known to 2%, or the time is up.

    The call must be warm. `alone`: this thread does all the work; `few` runs are made however long they take.
    """
    runs: list[tuple[int, int]] = []  # for each run, the number of interruptions and its ns
    waiting = Waiting()
    end = time.perf_counter() + seconds
    while len(runs) < MOST_RUNS:
        before = interruptions()
        took = lap(once, alone)
        runs.append((interruptions() - before, took))
        if time.perf_counter() > end:
            if len(runs) >= few:
                break
        elif len(runs) >= LEAST_RUNS and len(runs) % 8 == 0 and spread_of(undisturbed(runs)) <= ENOUGH:
            break
    times = undisturbed(runs)
    waited = waiting.share() if sum(not interrupted for interrupted, _ in runs) < LEAST_RUNS else 0.0
    return Timing(int(statistics.median(times)), spread_of(times), len(times), waited=waited)


def undisturbed(runs: Sequence[tuple[int, int]]) -> list[int]:
    """Times of the uninterrupted runs; if those are few, of the few fastest.

    A busy machine takes processors away in the middle of a run, and the op's other threads wait for that one. Such a
    run can take five times as long and says nothing about the op.
    """
    clean = [took for interrupted, took in runs if not interrupted]
    if len(clean) >= LEAST_RUNS:
        return clean
    return sorted(took for _, took in runs)[:LEAST_RUNS]


def spread_of(times: Sequence[int]) -> float:
    """Half the 95% confidence interval of the median, over the median: order statistics n/2 -+ 0.98 sqrt(n)."""
    ordered = sorted(times)
    reach = 0.98 * math.sqrt(len(ordered))
    low = max(0, math.floor(len(ordered) / 2 - reach))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + reach))
    return (ordered[high] - ordered[low]) / 2 / max(1.0, statistics.median(ordered))
