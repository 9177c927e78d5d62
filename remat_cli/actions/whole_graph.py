"""The whole graph run for its time, with operands that suit it, and held against what was predicted.

Invariant: nothing is run whose predicted peak does not fit in the free memory of this machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import onnx

from profiles import survey
from profiles.bench import OpBench
from profiles.costs import Costs, OpCost
from profiles.device import Device, free_memory
from profiles.running import CannotRun
from profiles.survey import Ops
from profiles.whole import SHARE, WHOLE_SECONDS, Times, Whole, WholeGraph, untaxed
from remat_cli.errors import BadInput, Usage
from remat_cli.ingest import IN_MEMORY
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import problem_of
from remat_cli.model.signatures import feeds_of
from remat_cli.onnx_graph.load import load
from remat_cli.saying.report import table
from remat_cli.units import show_bytes, show_change, show_time
from solvers.schedule import baseline

SLOWER_TIMES = 1000  # than on paper: a hundredth of the speed, a dozen runs
WORST_OPS = 10  # ops that --compare names


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
