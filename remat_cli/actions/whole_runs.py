"""Runs of the whole graph beside its ops: what they take there is told from what they take alone.

Invariant: a graph is run once for its costs; what was on record is not run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from profiles import cuda, records, survey
from profiles.bench import TIME_UP
from profiles.cache import Cache
from profiles.costs import OpCost
from profiles.device import Device
from profiles.measure import BUSY
from profiles.running import CannotRun, Endless
from profiles.survey import Ops
from profiles.totals import Totals
from profiles.whole import Times
from remat_cli.actions import whole_graph
from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph
from solvers.clock import Clock

BEFORE_SHARE = 0.3  # of the time left, at most, for runs of the whole graph before its ops are measured,
AFTER_SHARE = 0.6  # and after
ENDLESS = "a Loop that data ends may never end there: give it a count of rounds, or take costs from paper (--estimate)"


@dataclass(frozen=True, slots=True)
class ProfiledGraph:
    """A graph whose ops are measured, and where. `clock`: for all that is done with it."""

    graph: Graph
    ops: Ops
    device: Device
    cache: Cache
    whole: bool  # whether the whole graph is run
    clock: Clock

    def seconds(self, part: float) -> tuple[float, float]:
        """For what may have that part of the time left: seconds, and when they are over by `time.monotonic`."""
        left = part * self.clock.left()
        return left, monotonic() + left


def time_before(profiled: ProfiledGraph) -> Times:
    """The whole graph's times before its ops are measured: a machine is not as fast at all times."""
    alone = survey.alone(profiled.ops, profiled.cache, profiled.device)
    if not profiled.whole or profiled.clock.over() or records.recall(profiled.ops, profiled.cache, alone):
        return Times()
    try:
        return whole_graph.time(profiled.graph, profiled.ops, alone, profiled.device, *profiled.seconds(BEFORE_SHARE))
    except Endless as endless:
        refuse_endless(profiled.graph, str(endless))
        return Times()
    except CannotRun:  # this is said when it is tried again
        return Times()


def refuse_endless(graph: Graph, why: str) -> None:
    """Of a Loop that data ends a run that takes too long tells enough: each further one would take as long."""
    if any(op.op_type == "Loop" for op in graph.ops if op.name in graph.by_data):
        raise BadInput(f"{graph.path}: {why} on random inputs; {ENDLESS}")


def scale_to_whole(
    profiled: ProfiledGraph, alone: Mapping[str, OpCost], earlier: Times
) -> tuple[dict[str, OpCost], Totals]:
    """The ops' costs scaled to a run of the whole graph, and what the file says of that run."""
    ops, cache = profiled.ops, profiled.cache
    said = Totals(alone=sum(cost.ns for cost in alone.values()), session=cache.session_ns or 0)
    if profiled.device.kind == "cuda":
        said = replace(said, session_bytes=cuda.session_bytes())
    record = records.recall(ops, cache, alone)
    if record is None and profiled.whole and profiled.clock.over():
        said = replace(said, whole_graph=f"not run: {TIME_UP}")
    elif record is None and profiled.whole:
        seconds, until = profiled.seconds(AFTER_SHARE)
        try:
            whole = whole_graph.run(profiled.graph, ops, alone, profiled.device, seconds, earlier, until)
        except CannotRun as refused:
            said = replace(said, whole_graph=f"not run: {refused}")
        else:
            records.keep(ops, cache, records.calibrated(ops, alone, whole, profiled.device), whole)
            record = cache.wholes[ops.key]
    if record is None:
        return survey.scaled(ops, alone, None, {}), said
    calibration = records.calibration_of(record)
    costs = survey.scaled(ops, alone, calibration, record["inside"])
    return costs, _describe_run(profiled, replace(said, launch=calibration.launch), record, costs)


def _describe_run(
    profiled: ProfiledGraph, said: Totals, record: Mapping[str, Any], costs: Mapping[str, OpCost]
) -> Totals:
    """What the file says of the run that is on record."""
    cache, ops = profiled.cache, profiled.ops
    waited = record.get("waited", 0.0)
    said = replace(said, probe=cache.probes.get(ops.key), waited=waited if waited > BUSY else None)
    if ops.key not in cache.wholes:
        return replace(said, whole_graph="not run: scaled as a graph of the same ops was")
    difference = sum(cost.ns for cost in costs.values()) / max(1, record["ns"]) - 1
    said = replace(said, whole_graph=record["ns"], difference=f"{difference:+.2%}", median=record.get("median"))
    return replace(said, spread=record["spread"], runs=record["runs"])
