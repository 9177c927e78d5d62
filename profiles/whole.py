"""The whole graph in the session that plans are promised for: its time, and each op's share of it.

Invariant: after `calibrate`, the costs of all ops sum to the measured time of the whole graph. What an op takes alone,
with warm caches and nobody beside it, is only a shape: each class of ops is scaled to what it took inside the graph.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles.device import Device
from profiles.measure import LEAST_RUNS, sample
from profiles.running import bind, events, run, session, traced

WHOLE_SECONDS = 12.0  # for the runs of one graph; a few runs are made however long they take
DOUBT = 0.005  # of all ops' time
ROUNDS = 3  # of timing the whole graph: the fastest counts, the others had neighbours
LONG_NS = 300_000_000  # a graph this long runs but a few times
LONG_RUNS = 2
SUFFIX = "_kernel_time"
DISPATCH_NS = 5000  # at most so much between two kernels; what is beyond that slowed the kernels too


@dataclass(frozen=True, slots=True)
class Whole:
    """`ns`: one run, median; `inside`: what each op took in it, by name, as far as onnxruntime's trace tells."""

    ns: int
    spread: float
    runs: int
    inside: Mapping[str, int]
    elsewhere: int = 0  # kernels that bear no op's name: what onnxruntime made of ops that are functions


@dataclass(frozen=True, slots=True)
class Calibration:
    """cost = alone * factor of its class * `overall` + `each`; `ns` is the measured time it was made from."""

    factors: Mapping[str, float]
    each: float
    overall: float
    ns: int
    alone: int

    def apply(self, kind: str, alone: float) -> int:
        return round(alone * self.factors.get(kind, self.usual) * self.overall + self.each)

    @property
    def usual(self) -> float:
        """For a class that was not in the graph."""
        return statistics.median(self.factors.values()) if self.factors else 1.0


def run_whole(
    content: bytes,
    names: Sequence[str],
    feeds: dict[str, Any],
    device: Device,
    folder: Path,
    seconds: float = WHOLE_SECONDS,
) -> Whole:
    """Time the graph, then once more with onnxruntime's trace on. Raises CannotRun.

    A long graph is timed while it is traced, which costs it a microsecond an op: it need not run as often.
    """
    found = _at_once(content, names, feeds, device, folder)
    if found is not None:
        return found
    ns, spread, runs = _plainly(content, feeds, device, folder, seconds / 2)
    traces = max(1, min(40, int(seconds / 2 * 1e9 / max(1, ns)) - 1))
    return Whole(ns, spread, runs, *_shares(traced(content, feeds, device, traces + 1, folder), set(names)))


def _at_once(content: bytes, names: Sequence[str], feeds: dict[str, Any], device: Device, folder: Path) -> Whole | None:
    """A long graph timed and traced in one; None where it is short. Sessions end one before the next is made."""
    with tempfile.TemporaryDirectory(prefix="remat-") as scratch:
        running = session(content, device, Path(scratch) / "trace", folder)
        binding = bind(running, feeds, device)
        begin = time.perf_counter_ns()
        run(running, binding)
        if time.perf_counter_ns() - begin <= LONG_NS:
            return None
        ns, spread, runs = sample(lambda: run(running, binding), 0.0, LONG_RUNS)
        return Whole(ns, spread, runs, *_shares(events(running), set(names)))


def _plainly(
    content: bytes, feeds: dict[str, Any], device: Device, folder: Path, seconds: float
) -> tuple[int, float, int]:
    """The fastest of some rounds."""
    running = session(content, device, folder=folder)
    binding = bind(running, feeds, device)
    run(running, binding)
    return min(sample(lambda: run(running, binding), seconds / ROUNDS) for _ in range(ROUNDS))


def _shares(events: Sequence[Any], names: set[str]) -> tuple[dict[str, int], int]:
    """What each op took in the traced runs, the first left out; and the sum of what bears no op's name."""
    times: dict[str, list[int]] = defaultdict(list)
    for event in sorted(events, key=lambda event: int(event["ts"])):
        if event.get("cat") == "Node" and event["name"].endswith(SUFFIX):
            times[event["name"].removesuffix(SUFFIX)].append(int(event["dur"]) * 1000)
    middles = {name: _middle(found[1:]) for name, found in times.items() if found[1:]}
    inside = {name: ns for name, ns in middles.items() if name in names}
    elsewhere = sum(ns for name, ns in middles.items() if name not in names)
    return inside, elsewhere


def _middle(times: Sequence[int]) -> int:
    """The median of the few fastest: in a long trace on a busy machine nearly every op was interrupted now and then."""
    return int(statistics.median(sorted(times)[:LEAST_RUNS]))


def calibrate(whole: Whole, alone: Mapping[str, float], kinds: Mapping[str, str]) -> Calibration:
    """Factors by class. `alone`: ns of each op that takes time; `kinds`: its class."""
    inside: dict[str, float] = defaultdict(float)
    summed: dict[str, float] = defaultdict(float)
    unnamed = [name for name in alone if name not in whole.inside]
    unnamed_alone = sum(alone[name] for name in unnamed)
    for name, ns in alone.items():
        summed[kinds[name]] += ns
        if name in whole.inside:
            inside[kinds[name]] += whole.inside[name]
        elif unnamed_alone:
            inside[kinds[name]] += whole.elsewhere * ns / unnamed_alone
    common = sum(inside.values()) / max(1.0, sum(summed.values()))
    doubt = DOUBT * sum(summed.values())  # a class of a few microseconds tells little: it leans on the others
    factors = {kind: (inside[kind] + doubt * common) / (summed[kind] + doubt) for kind in summed if doubt}
    total = sum(alone[name] * factors.get(kinds[name], 1.0) for name in alone)
    rest = whole.ns - total  # less than nothing when the traced runs were the slower ones
    each = min(max(0.0, rest / max(1, len(alone))), DISPATCH_NS)
    overall = (whole.ns - each * len(alone)) / total if total else 1.0
    return Calibration(factors, each, overall, whole.ns, math.ceil(sum(alone.values())))
