"""Runs the whole graph in the session that plans are promised for: its time, and each op's share of it.

Invariant: after `calibrate`, the costs of all ops sum to the measured time of the whole graph. An op's time alone, with
warm caches and nothing beside it, only gives proportions: each class of ops is scaled to its time inside the graph.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles.device import Device
from profiles.measure import BUSY, spread_of
from profiles.running import bind, run, session, traced
from profiles.stopwatch import Waiting, lap, works_alone
from profiles.system import fresh_pages

WHOLE_SECONDS = 12.0  # for the runs of one graph; a few runs are made however long they take
SHARE = 0.25  # share of that for each series of untraced runs: before its ops are measured, and after
TRACED_SHARE = 0.3
LEAST_RUNS = 4  # of a graph whose run fits in the time of its series; otherwise FEW
WARM_RUNS = 3  # at most, after the first
WARM_FAULTS = 0.02  # share of the first run's page faults: with fewer, the arena no longer grows
HARDLY = 0.02  # share of its time that a run's threads may wait for a processor
FEW = 2  # undisturbed runs that count more than all disturbed ones
TRACED_RUNS = (1, 200)  # after the first
TRACED_EVENTS = 60_000  # each takes a kilobyte
DOUBT = 0.005  # share of all ops' time
SUFFIX = "_kernel_time"
# the most that the trace adds to a kernel; if it added more, it slowed the work too
TAX_NS = {"cpu": 5000, "cuda": 30_000}
DISPATCH_NS = {"cpu": 800, "cuda": 5000}  # the most without a trace: on six graphs, empty kernels took 700 to 1100
LEAST_NS = 200  # no kernel was measured to take less, nor to be launched for less


@dataclass(frozen=True, slots=True)
class WholeGraph:
    """The graph to run: the model's bytes, its feeds, and the folder of its external data. `names`: of its ops."""

    content: bytes
    names: tuple[str, ...]
    feeds: dict[str, Any]
    folder: Path


@dataclass(frozen=True, slots=True)
class Times:
    """ns of each run of a graph, of the undisturbed runs alone where there are any.

    `waited`: the share of the time that the threads of the other runs waited for a processor.
    """

    runs: tuple[int, ...] = ()
    waited: float = 0.0

    @property
    def ns(self) -> int:
        """The time of an undisturbed run: the tenth percentile. On a machine with neighbours no other figure
        repeats."""
        return sorted(self.runs)[len(self.runs) // 10]

    def __add__(self, other: Times) -> Times:
        """Both, or those that were disturbed less."""
        if (self.waited > BUSY) != (other.waited > BUSY) and self.runs and other.runs:
            return min(self, other, key=lambda times: times.waited)
        return Times((*self.runs, *other.runs), max(self.waited, other.waited))


@dataclass(frozen=True, slots=True)
class Whole:
    """`times`: ns of each run; `inside`: ns of each op in traced runs, by name, as far as the trace tells.

    `waited`: the share of the time that threads waited for a processor, in those of these figures that show it.
    """

    times: tuple[int, ...]
    inside: Mapping[str, int]
    elsewhere: int = 0  # kernels without an op's name: onnxruntime made them of ops that are functions
    waited: float = 0.0

    @property
    def ns(self) -> int:
        """The time of an undisturbed run."""
        return Times(self.times).ns

    @property
    def median(self) -> int:
        """The median time of a run."""
        return int(statistics.median(self.times))

    @property
    def spread(self) -> float:
        return spread_of(self.times)


@dataclass(frozen=True, slots=True)
class Calibration:
    """cost = (alone * factor of its class + `each`) * `overall`; `ns` is the measured time it was made from."""

    factors: Mapping[str, float]
    each: float
    overall: float
    ns: int
    alone: int

    def apply(self, kind: str, alone: float) -> int:
        return round((alone * self.factors.get(kind, self.usual) + self.each) * self.overall)

    @property
    def usual(self) -> float:
        """The factor for a class that was not in the graph."""
        return statistics.median(self.factors.values()) if self.factors else 1.0

    @property
    def launch(self) -> int:
        """The cost of the cheapest kernel in the graph."""
        return round((LEAST_NS + self.each) * self.overall)


def trace_whole(graph: WholeGraph, device: Device, seconds: float, fastest: int) -> tuple[dict[str, int], int, float]:
    """Each op's time in traced runs, the time of kernels without an op's name, and the share of time that threads
    waited. Raises CannotRun.

    `fastest`: ns of a run without a trace. Traced runs do not measure the whole, because the trace adds up to 15
    microseconds to a kernel.
    """
    least, most = TRACED_RUNS
    wanted = min(seconds * TRACED_SHARE * 1e9 / max(1, fastest), TRACED_EVENTS / max(1, len(graph.names)))
    runs = max(least, min(most, int(wanted)))
    waiting = Waiting()
    events = traced(graph.content, graph.feeds, device, runs + 1, graph.folder)
    return *_shares(events, set(graph.names)), waiting.share()


def time_whole(graph: WholeGraph, device: Device, seconds: float = WHOLE_SECONDS * SHARE) -> Times:
    """Times of runs without a trace, once the arena no longer grows. Raises CannotRun.

    A graph whose first run takes all of the time is run a few times more and no longer warmed: its arena grows in a
    small part of a run.
    """
    running = session(graph.content, device, folder=graph.folder)
    binding = bind(running, graph.feeds, device)
    alone, begin = works_alone(device), time.perf_counter()
    first = _touched(lambda: run(running, binding))
    slow = time.perf_counter() - begin > seconds
    for _ in range(0 if slow else WARM_RUNS):
        if _touched(lambda: run(running, binding)) <= first * WARM_FAULTS:
            break
    laps: list[tuple[int, float]] = []
    end = time.perf_counter() + seconds
    while len(laps) < (FEW if slow else LEAST_RUNS) or time.perf_counter() < end:
        waiting = Waiting()
        took = lap(lambda: run(running, binding), alone)
        laps.append((took, 0.0 if alone else waiting.share()))
    return undisturbed(laps)


def undisturbed(laps: Sequence[tuple[int, float]]) -> Times:
    """The runs in which threads hardly waited for a processor, if there are a few; otherwise all, with their
    waiting."""
    clean = [took for took, waited in laps if waited <= HARDLY]
    if len(clean) >= min(FEW, len(laps)):
        return Times(tuple(clean))
    return Times(tuple(took for took, _ in laps), statistics.median(waited for _, waited in laps))


def _touched(once: Callable[[], None]) -> int:
    """The number of pages that one run touches for the first time."""
    before = fresh_pages()
    once()
    return fresh_pages() - before


def _shares(events: Sequence[Any], names: set[str]) -> tuple[dict[str, int], int]:
    """Each op's time in traced runs, without the first run, and the time of kernels without an op's name."""
    usual = by_name(events)
    inside = {name: ns for name, ns in usual.items() if name in names}
    elsewhere = sum(ns for name, ns in usual.items() if name not in names)
    return inside, elsewhere


def by_name(events: Sequence[Any]) -> dict[str, int]:
    """Each node's time in undisturbed traced runs, without the first run."""
    times: dict[str, list[int]] = defaultdict(list)
    for event in sorted(events, key=lambda event: int(event["ts"])):
        if event.get("cat") == "Node" and event["name"].endswith(SUFFIX):
            times[event["name"].removesuffix(SUFFIX)].append(int(event["dur"]) * 1000)
    return {name: _undisturbed(found[1:]) for name, found in times.items() if found[1:]}


def _undisturbed(times: Sequence[int]) -> int:
    """The mean of the fastest quarter: the trace counts whole microseconds, and a mean is finer."""
    return round(statistics.fmean(sorted(times)[: max(1, len(times) // 4)]))


def calibrate(whole: Whole, alone: Mapping[str, float], kinds: Mapping[str, str], device: str) -> Calibration:
    """Factors by class. `alone`: ns of each op that takes time; `kinds`: its class; `device`: its kind."""
    inside = untaxed(whole, alone, device)
    within: dict[str, float] = defaultdict(float)
    summed: dict[str, float] = defaultdict(float)
    for name, ns in alone.items():
        summed[kinds[name]] += ns
        within[kinds[name]] += inside[name]
    each = _launch(whole, inside, DISPATCH_NS[device])
    common = sum(within.values()) / max(1.0, sum(summed.values()))
    doubt = DOUBT * sum(summed.values())  # a class of a few microseconds is uncertain, so it leans on the others
    factors = {kind: (within[kind] + doubt * common) / (summed[kind] + doubt) for kind in summed if doubt}
    total = sum(alone[name] * factors.get(kinds[name], 1.0) + each for name in alone)
    return Calibration(factors, each, whole.ns / total if total else 1.0, whole.ns, math.ceil(sum(alone.values())))


def untaxed(whole: Whole, alone: Mapping[str, float], device: str) -> dict[str, float]:
    """The time of each op's own work inside the graph, without the microseconds that the trace adds to each kernel."""
    inside = _inside(whole, alone)
    tax = min(_tax(inside, alone), TAX_NS[device])
    return {name: max(0.0, ns - tax) for name, ns in inside.items()}


def _inside(whole: Whole, alone: Mapping[str, float]) -> dict[str, float]:
    """Each op's time in the trace; the time of kernels without an op's name is shared among ops without a kernel."""
    unnamed = sum(ns for name, ns in alone.items() if name not in whole.inside)
    return {
        name: float(whole.inside[name]) if name in whole.inside else whole.elsewhere * ns / max(1.0, unnamed)
        for name, ns in alone.items()
    }


def _tax(inside: Mapping[str, float], alone: Mapping[str, float]) -> float:
    """The time that the trace adds to every kernel, by the ops that hardly do any work."""
    small = sorted(alone, key=lambda name: alone[name])[: max(1, len(alone) // 10)]
    found = statistics.median([inside[name] - alone[name] for name in small]) if small else 0.0
    return max(0.0, found)


def _launch(whole: Whole, work: Mapping[str, float], most: int) -> float:
    """The time of a kernel besides its work, without a trace: the rest of an undisturbed run, divided among the
    kernels."""
    rest = (whole.ns - sum(work.values())) / max(1, len(work))
    return min(max(rest, LEAST_NS), most)
