"""The cost of every op of a graph: measures what the cache lacks, estimates what cannot run, scales to the whole graph.

Invariant: a signature is measured at most once per cache; every op has a cost, which says how it was obtained.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from profiles import roofline
from profiles.bench import OpBench, expected_peak
from profiles.cache import Cache
from profiles.costs import OpCost, rounded
from profiles.device import Device
from profiles.kernels import scratch
from profiles.measure import BUSY, LEAST_RUNS
from profiles.probe import OFF
from profiles.running import CannotRun, OutOfTime
from profiles.signature import OpSignature
from profiles.whole import LEAST_NS, WHOLE_SECONDS, Calibration

OPS_SHARE = 0.5  # share of the time; the whole graph has the rest
PER_ROUND = (0.005, 0.05)  # in seconds: the least and the most for a signature
ROUNDS = 16  # at most: with as many rounds, two profiles agree on the order of ops that differ by a microsecond
LONG_NS = 5_000_000  # such an op is measured in few rounds, because its median covers shorter noise
LONG_ROUNDS = 4
OVERHEAD = 0.01  # in seconds: making operands and a session once
AGAIN = "this machine was slower when ops of this graph were measured (a probe took {:.1f} times as long): done again"
CALMER = "this machine was busy when this graph was measured (threads waited for {:.0%} of the time): done again"
SLOWER = "this machine is slower now than when these ops were measured: a probe takes {:.1f} times as long"
FULLER = "measured with the outputs that are left out here"


@dataclass(frozen=True, slots=True)
class Ops:
    """A graph's ops by name; `free` names the views of an input, `light` those whose only cost is their launch."""

    signatures: Mapping[str, OpSignature]
    free: frozenset[str] = frozenset()
    light: frozenset[str] = frozenset()

    def timed(self) -> dict[str, OpSignature]:
        untimed = self.free | self.light
        return {name: signature for name, signature in self.signatures.items() if name not in untimed}

    def distinct(self) -> dict[str, OpSignature]:
        """The signatures to measure, by key."""
        return {signature.key: signature for signature in self.timed().values()}

    @property
    def key(self) -> str:
        """A name that is the same for graphs of the same ops, whatever their names."""
        counted = sorted(Counter(signature.key for signature in self.timed().values()).items())
        return hashlib.sha256(repr(counted).encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class SurveyProgress:
    """Progress: ops measured, `done` of `total`, the op at work, the seconds that the rest should take, and `at`: how
    far that is, of 1. When all are measured, time is left in which they are measured again.
    """

    done: int
    total: int
    what: str
    left: float
    at: float = 0.0


def missing(ops: Ops, cache: Cache) -> dict[str, OpSignature]:
    """The signatures that the cache lacks."""
    known = cache.timings.keys() | cache.refusals.keys()
    return {key: signature for key, signature in ops.distinct().items() if cache.key_of(signature) not in known}


def held_against_now(ops: Ops, device: Device, cache: Cache, until: float = math.inf) -> tuple[str, ...]:
    """Time the probe and forget figures that were measured while this machine was slower; the result is notes."""
    try:
        with OpBench(device, until) as bench:
            cache.probe = bench.probe()
    except CannotRun:  # the stored figures stay
        return ()
    if cache.probe.waited > BUSY:  # measured again beside others, the figures would be no better
        return ()
    kept = {key for signature in ops.distinct().values() if (key := cache.key_of(signature)) in cache.timings}
    ratios = cache.slowness((*kept, *cache.wholes))
    disturbed = cache.disturbed((*kept, *cache.wholes))
    cache.forget([*(key for key, ratio in ratios.items() if ratio > 1 + OFF), *disturbed])
    own = [ratios[key] for key in (*kept, ops.key) if key in ratios]
    if mine := [ratio for ratio in own if ratio > 1 + OFF]:
        return (AGAIN.format(max(mine)),)
    if shares := [disturbed[key] for key in (*kept, ops.key) if key in disturbed]:
        return (CALMER.format(max(shares)),)
    return (SLOWER.format(1 / min(own)),) if own and min(own) < 1 / (1 + OFF) else ()


def share(count: int, seconds: float) -> float:
    """Seconds for each signature in one round."""
    least, most = PER_ROUND
    return min(most, max(least, seconds / max(1, count) / ROUNDS - OVERHEAD))


def how_long(graphs: Sequence[Ops], cache: Cache, device: Device, seconds: float) -> float:
    """The approximate seconds to measure what is missing, and to run the graphs that were never run."""
    paper, total = _nearest(device), 0.0
    for ops in graphs:
        wanted = missing(ops, cache)
        each = share(len(wanted), OPS_SHARE * seconds / len(graphs))
        once = sum(max(each, LEAST_RUNS * paper.time(one) / 1e9) + OVERHEAD for one in wanted.values())
        total += max(once, min(OPS_SHARE * seconds / len(graphs), ROUNDS * once))
        if ops.key not in cache.wholes:
            total += max(WHOLE_SECONDS, 6e-9 * sum(paper.time(signature) for signature in ops.timed().values()))
    return total


def measure_missing(
    ops: Ops,
    device: Device,
    cache: Cache,
    seconds: float,
    until: float = math.inf,
) -> Iterator[SurveyProgress]:
    """Measure what the cache lacks, and say before each op how far that is; each result is kept at once. `until`: when
    it ends, by `time.monotonic`, whatever is still missing; what was measured by then is not measured again.

    All are measured once, then again and again while there is time, and the fastest round counts: a neighbour that
    slows the machine for a second or two then makes some rounds slower, not some ops.
    """
    wanted = sorted(missing(ops, cache).items(), key=lambda item: (expected_peak(item[1]), item[0]))
    seconds *= OPS_SHARE
    each = share(len(wanted), seconds)
    total, started = ROUNDS * len(wanted), time.perf_counter()
    with OpBench(device, until) as bench, suppress(OutOfTime):
        if wanted and cache.session_ns is None:
            cache.keep_session(bench.session_ns())
        for done, (turn, (key, signature)) in enumerate(itertools.product(range(ROUNDS), wanted)):
            spent = time.perf_counter() - started
            if turn and spent > seconds:
                break
            one, count = spent / done if done else each + OVERHEAD, len(wanted)
            left = max(one * (count - done), min(one * (total - done), seconds - spent), 0.0)
            at = spent / (spent + left) if done else 0.0
            yield SurveyProgress(min(done, count), count, str(signature), left, at)
            if turn == 0:
                _measure_first(signature, cache, each, bench)
            elif key in cache.timings and (turn < LONG_ROUNDS or cache.timings[key].ns < LONG_NS):
                _measure_again(signature, cache, each, bench)


def _measure_first(signature: OpSignature, cache: Cache, seconds: float, bench: OpBench) -> None:
    try:
        timing = bench.measure(signature, seconds)
    except OutOfTime:
        raise
    except CannotRun as refused:
        words = f"out of memory: {refused}" if refused.memory else str(refused)
        cache.keep_refusal(signature, words, today())
    else:
        cache.keep_timing(signature, timing, today())


def _measure_again(signature: OpSignature, cache: Cache, seconds: float, bench: OpBench) -> None:
    before = cache.timings[signature.key]
    try:
        timing = bench.time(signature, seconds)
    except OutOfTime:
        raise
    except CannotRun:  # it ran once, so its first figure stands
        return
    if timing.ns < before.ns or timing.waited < before.waited:
        ns = min(timing.ns, before.ns)  # interference only ever makes an op look slower
        cache.keep_timing(signature, replace(timing, ns=ns, workspace=before.workspace), today())


def today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def refused(ops: Ops, cache: Cache) -> dict[str, str]:
    """The ops that onnxruntime would not run alone, and why."""
    found = {name: cache.refusal(signature) for name, signature in ops.timed().items()}
    return {name: reason for name, reason in found.items() if reason is not None}


def alone(ops: Ops, cache: Cache, device: Device) -> dict[str, OpCost]:
    """Each op by itself: the measured time less that of an empty session run, or an estimate where the op cannot
    run."""
    paper = _nearest(device)
    corrections = _corrections(ops, cache, paper)
    found = {}
    for name, signature in ops.signatures.items():
        timing = cache.timing(signature)
        if name in ops.free:
            found[name] = OpCost(0, 0, "view")
        elif name in ops.light:
            found[name] = OpCost(LEAST_NS, 0, "estimated", note="its launch: it makes nothing to speak of")
        elif timing:
            ns = max(LEAST_NS, timing.ns - (cache.session_ns or 0))
            found[name] = OpCost(
                ns,
                timing.workspace,
                "measured",
                ns,
                round(timing.spread, 4),
                timing.runs,
                note="" if signature.key in cache.timings else FULLER,
            )
        else:
            ns = round(paper.time(signature) * corrections[signature.op_type in roofline.PRODUCTS])
            reason = cache.refusal(signature) or "not measured"
            held = scratch(signature, device.threads) if device.kind == "cpu" else 0
            found[name] = OpCost(ns, held, "estimated", ns, note=f"roofline of {paper.name}, fitted; {reason[:120]}")
    return found


def scaled(
    ops: Ops, costs: Mapping[str, OpCost], calibration: Calibration | None, inside: Mapping[str, int]
) -> dict[str, OpCost]:
    """Costs inside the graph: each class is scaled; an op that cannot run alone has its time in the graph (by
    family)."""
    found = {}
    for name, cost in costs.items():
        ns, how, signature = cost.ns, cost.how, ops.signatures[name]
        if name in ops.light and calibration is not None:
            ns = calibration.launch
        elif name not in ops.free and calibration is not None:
            ns = calibration.apply(signature.op_type, cost.ns)
            if how == "estimated" and signature.family in inside:
                ns, how = inside[signature.family], "inside"
        single = rounded(cost.ns) if cost.runs else None
        found[name] = replace(cost, ns=rounded(ns), how=how, alone=single)
    return found


def dated(ops: Ops, cache: Cache) -> str:
    """The date of the newest measurement, so that the same figures give the same file on any day."""
    keys = [*(cache.key_of(signature) for signature in ops.distinct().values()), ops.key]
    return max((cache.dates.get(key, "") for key in keys), default="")


def estimated(ops: Ops, where: str) -> dict[str, OpCost]:
    """Estimates of each op: for a device of `roofline.names()`, or `flops`. The workspace is that of the CPU's
    kernels."""

    @cache
    def cost(signature: OpSignature) -> OpCost:
        return OpCost(roofline.estimate(signature, where), scratch(signature) if where == "cpu" else 0, "estimated")

    return {
        name: OpCost(0, 0, "view") if name in ops.free else cost(signature)
        for name, signature in ops.signatures.items()
    }


def _nearest(device: Device) -> roofline.Roofline:
    named = [name for name in roofline.names() if name in device.name.lower()]
    return roofline.device(named[0] if named else "h100" if device.kind == "cuda" else "cpu")


def _corrections(ops: Ops, cache: Cache, paper: roofline.Roofline) -> dict[bool, float]:
    """The ratio of this device's times to the estimates, by the ops that did run: for products (True) and for the
    rest."""
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for signature in ops.distinct().values():
        timing = cache.timing(signature)
        if timing:
            ratios[signature.op_type in roofline.PRODUCTS].append(timing.ns / max(1, paper.time(signature)))
    return {product: statistics.median(found) if found else 1.0 for product, found in ratios.items()}
