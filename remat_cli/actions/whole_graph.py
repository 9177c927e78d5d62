"""The whole graph run for its time, with operands that suit it: held against what was predicted, and beside its ops,
whose costs there are told from what they take alone.

Invariant: nothing is run whose predicted peak does not fit in the free memory of this machine. A
graph is run once for its costs; what was on record is not run again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import onnx

from profiles import cuda, records, survey
from profiles.bench import TIME_UP, OpBench
from profiles.cache import Cache
from profiles.costs import Costs, OpCost
from profiles.device import Device, free_memory
from profiles.measure import BUSY
from profiles.running import CannotRun, Endless
from profiles.survey import Ops
from profiles.totals import Totals
from profiles.whole import SHARE, WHOLE_SECONDS, Times, Whole, WholeGraph, untaxed
from remat_cli.errors import BadInput, Usage
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import problem_of
from remat_cli.model.signatures import feeds_of
from remat_cli.onnx_graph.load import IN_MEMORY, load
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes, show_change, show_time
from solvers.clock import Clock
from solvers.schedule import baseline

SLOWER_TIMES = 1000  # than on paper: a hundredth of the speed, a dozen runs
WORST_OPS = 10  # ops that --compare names
BEFORE_SHARE = 0.3  # of the time left, at most, for runs of the whole graph before its ops are measured,
AFTER_SHARE = 0.6  # and after
ENDLESS = "a Loop that data ends may never end there: give it a count of rounds, or take costs from paper (--estimate)"


@dataclass(frozen=True, slots=True)
class TimeDifference:
    """Predicted and measured ns: of the whole, by class, and of the ops that are most off."""

    predicted: int
    measured: int
    classes: tuple[tuple[str, int, int], ...]
    worst: tuple[tuple[str, int, int], ...]
    median: int = 0  # of the runs: `measured` is what one takes undisturbed

    def as_object(self) -> dict[str, Any]:
        return {
            "predicted": self.predicted,
            "measured": self.measured,
            "median": self.median,
            "difference": round(self.predicted / max(1, self.measured) - 1, 4),
            "classes": {name: list(pair) for name, *pair in self.classes},
            "worst": {name: list(pair) for name, *pair in self.worst},
        }

    def as_text(self) -> str:
        head = ("", "predicted", "measured", "off by")
        total = _row("the whole graph", self.predicted, self.measured)
        usual = _row("  as a median", self.predicted, self.median)
        classes = [_row(*row) for row in self.classes]
        worst = [_row(*row) for row in self.worst]
        return table([head, total, usual, *classes, ("most off:", "", "", ""), *worst])


def _row(name: str, predicted: int, measured: int) -> tuple[str, str, str, str]:
    return name, show_time(predicted), show_time(measured), show_change(measured, predicted, 1) or "-"


def time(
    graph: Graph, ops: Ops, costs: Mapping[str, OpCost], device: Device, seconds: float, until: float = math.inf
) -> Times:
    """Times of the whole graph, in ns. Raises CannotRun, also where it would not fit, or ends too late."""
    check_room(graph, costs, device)
    with OpBench(device, until) as bench:
        return bench.whole_times(_subject(graph, ops), SHARE * min(seconds, WHOLE_SECONDS), _slack(ops))


def run(
    graph: Graph,
    ops: Ops,
    costs: Mapping[str, OpCost],
    device: Device,
    seconds: float,
    earlier: Times,
    until: float = math.inf,
) -> Whole:
    """Time and trace the whole graph. Raises CannotRun, also where it would not fit, or ends too late. `earlier`: times
    found before."""
    check_room(graph, costs, device)
    with OpBench(device, until) as bench:
        return bench.whole(_subject(graph, ops), min(seconds, WHOLE_SECONDS), earlier, _slack(ops))


def _slack(ops: Ops) -> float:
    """Seconds that runs of the whole may take, whatever the machine: far more than what they take on paper."""
    return SLOWER_TIMES * sum(cost.ns for cost in survey.estimated(ops, "cpu").values()) / 1e9


def _subject(graph: Graph, ops: Ops) -> WholeGraph:
    names = tuple(op.name for op in graph.ops)
    return WholeGraph(graph.model.SerializeToString(), names, feeds_of(graph, ops), graph.path.parent.resolve())


def check_room(graph: Graph, costs: Mapping[str, OpCost], device: Device) -> None:
    named = problem_of(graph, {name: (cost.ns, cost.workspace) for name, cost in costs.items()}, device.kind)
    _, outcome = baseline(named.problem)
    free = free_memory(device)
    if outcome.peak > free:
        words = f"it needs {show_bytes(outcome.peak)} and {show_bytes(free)} are free"
        raise CannotRun(words, memory=True)


def compare(graph: Graph, ops: Ops, costs: Costs, device: Device, seconds: float) -> TimeDifference:
    """Run the whole graph now and hold it against the costs. Time between kernels is shared out among them."""
    until = monotonic() + seconds
    try:
        earlier = time(graph, ops, costs.ops, device, seconds, until)
        whole = run(graph, ops, costs.ops, device, seconds, earlier, until)
    except CannotRun as refused:
        raise BadInput(
            f"{graph.path}: the whole graph cannot be run, so there is nothing to compare: {refused}"
        ) from refused
    inside = untaxed(whole, {name: float(costs.ops[name].ns) for name in ops.timed()}, device.kind)
    stretch = whole.ns / max(1.0, sum(inside.values()))
    rows = [(name, costs.ops[name].ns, round(took * stretch)) for name, took in inside.items()]
    worst = sorted(rows, key=lambda row: (-abs(row[1] - row[2]), row[0]))[:WORST_OPS]
    return TimeDifference(costs.total, whole.ns, tuple(_by_class(rows, ops)), tuple(worst), whole.median)


def _by_class(rows: Iterable[tuple[str, int, int]], ops: Ops) -> list[tuple[str, int, int]]:
    predicted: Counter[str] = Counter()
    measured: Counter[str] = Counter()
    for name, ns, took in rows:
        predicted[ops.signatures[name].op_type] += ns
        measured[ops.signatures[name].op_type] += took
    return [(kind, predicted[kind], took) for kind, took in measured.most_common()]


def batch_dim(model: Path | onnx.ModelProto, named: str | None, bound: Mapping[str, int]) -> str:
    """The symbolic dimension that stands for the batch."""
    proto = load(model)[0] if isinstance(model, Path) else model
    what = model if isinstance(model, Path) else IN_MEMORY
    found: set[str] = {
        dim.dim_param for value in proto.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param
    }
    free = sorted(found - set(bound))
    if named is not None:
        if named not in free:
            raise Usage(f"{what}: there is no free dimension '{named}'; there are: {', '.join(free) or 'none'}")
        return named
    if len(free) == 1:
        return free[0]
    if "batch" in free:
        return "batch"
    if not free:
        raise Usage(f"{what}: its batch size is fixed in the file; export it with a symbolic one, such as 'batch'")
    raise Usage(f"{what}: say which dimension is the batch with --batch-dim: {', '.join(free)}")


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
        return time(profiled.graph, profiled.ops, alone, profiled.device, *profiled.seconds(BEFORE_SHARE))
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
            whole = run(profiled.graph, ops, alone, profiled.device, seconds, earlier, until)
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
