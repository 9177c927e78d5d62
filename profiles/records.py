"""Records of runs of whole graphs: stored, found again for graphs of nearly the same ops, and turned into scales.

Invariant: a record says which ops it is from, so that it serves no graph whose time is in other ops.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from profiles.cache import Cache
from profiles.costs import OpCost
from profiles.device import Device
from profiles.survey import Ops, alone, scaled, today
from profiles.whole import Calibration, Whole, calibrate

BESIDE = "by default: "  # of the names of kernels that are no ops of the graph
LARGE = 2.5  # relative to the time alone; a larger factor gets a note


MATTERS = 0.02  # share of the whole time


COVERED = 0.9  # a calibration serves another graph if this share of its time is in ops that both have


def outliers(ops: Ops, alone: Mapping[str, OpCost], costs: Mapping[str, OpCost]) -> list[str]:
    """Notes on the classes of ops whose scale is large: their times alone do not show their times in the graph."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for name, signature in ops.timed().items():
        before[signature.op_type] += alone[name].ns
        after[signature.op_type] += costs[name].ns
    usual = sum(after.values()) / max(1, sum(before.values()))
    least = MATTERS * sum(after.values())
    off = {kind: after[kind] / max(1, before[kind]) / usual for kind in after if after[kind] > least}
    return [f"{kind} x{off[kind]:.2g}" for kind in sorted(off) if not 1 / LARGE < off[kind] < LARGE]


def calibrated(ops: Ops, costs: Mapping[str, OpCost], whole: Whole, device: Device) -> Calibration:
    """Factors that make the ops of this graph sum to its measured time."""
    timed = ops.timed()
    return calibrate(
        whole,
        {name: float(costs[name].ns) for name in timed},
        {name: signature.op_type for name, signature in timed.items()},
        device.kind,
    )


def keep(ops: Ops, cache: Cache, calibration: Calibration, whole: Whole) -> None:
    """Store a whole run, for this graph and for those made from it."""
    record = {**asdict(calibration), "median": whole.median, "spread": round(whole.spread, 4), "runs": len(whole.times)}
    record["waited"] = whole.waited
    record["signatures"] = sorted({cache.key_of(signature) for signature in ops.distinct().values()})
    record["inside"] = inside_of(ops, cache, whole)
    cache.keep_whole(ops.key, record, today())


def inside_of(ops: Ops, cache: Cache, whole: Whole) -> dict[str, int]:
    """The times in the whole graph, by family, of the ops that could not run alone."""
    found: dict[str, list[int]] = {}
    for name, signature in ops.timed().items():
        if cache.timing(signature) is None and name in whole.inside:
            found.setdefault(signature.family, []).append(whole.inside[name])
    return {key: int(statistics.median(times)) for key, times in found.items()}


def recall(ops: Ops, cache: Cache, costs: Mapping[str, OpCost]) -> dict[str, Any] | None:
    """The record of a run of this very graph; otherwise of a graph that has nearly all of its ops."""
    if ops.key in cache.wholes:
        return cache.wholes[ops.key]
    total = sum(cost.ns for cost in costs.values())
    best, covered = None, COVERED * total
    for other in cache.wholes.values():
        held = set(other["signatures"])
        found = sum(costs[name].ns for name, signature in ops.timed().items() if cache.key_of(signature) in held)
        if found >= covered:
            best, covered = other, found
    return best


def calibration_of(record: Mapping[str, Any]) -> Calibration:
    """The calibration that a record holds."""
    return Calibration(dict(record["factors"]), record["each"], record["overall"], record["ns"], record["alone"])


def with_kernels(ops: Ops, kernels: Ops) -> Ops:
    """Kernels beside the ops, under names that no op has."""
    named = {f"{BESIDE}{name}": one for name, one in kernels.signatures.items()}
    free, light = ({f"{BESIDE}{name}" for name in names} for names in (kernels.free, kernels.light))
    return Ops({**ops.signatures, **named}, ops.free | free, ops.light | light)


def costs_of_kernels(
    kernels: Ops, ops: Ops, costs: Mapping[str, OpCost], device: Device, cache: Cache
) -> dict[str, OpCost]:
    """What they take, scaled as the ops are, which cost so much alone; those that were not measured as these were off
    paper."""
    record, both = recall(ops, cache, costs), with_kernels(ops, kernels)
    calibration, inside = (calibration_of(record), record["inside"]) if record else (None, {})
    found = scaled(both, alone(both, cache, device), calibration, inside)
    return {name: found[f"{BESIDE}{name}"] for name in kernels.signatures}
