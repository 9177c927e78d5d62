"""What `sweep --measure` does, on values: the curve's models run, for their time and for what their process holds.

Each is run in turn with the model as it is, in one process, as `verify --time` does it: what a step takes is that
model's time, over all of these runs, by how the two compare in each. What it holds is counted in a process of its own.

Invariant: what is timed is what `verify` holds to its promises: the rewritten model, in the session of its plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from remat_cli.actions import emitting
from remat_cli.actions.verifying import in_a_file
from remat_cli.checking.feeds import draw_feeds
from remat_cli.checking.metered import Reply
from remat_cli.checking.processes import Bench
from remat_cli.errors import BadInput, Usage
from remat_cli.plans.planned import Planned
from remat_cli.plans.points import Curve, Ran

RACE_SECONDS = 3.0  # for each model
TIMEOUT_SECONDS = 600.0  # seconds, for each process


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """ns of a model and, at the same time, of the one as it is; bytes that the model held, if they can be counted."""

    own: int
    other: int
    held: int | None


def measure_curve(curve: Curve, report: Callable[[int, int], None] = lambda _, __: None) -> Curve:
    """The curve with what the model as it is, and its plans, took when they were run."""
    graph = curve.subject.graph
    plans = {str(p.recorded.program): p for point in curve.points if (p := curve.planned(point)) is not None}
    if graph is None or not plans:
        raise Usage("--measure runs models: it wants an .onnx model, and a plan of it")
    some = next(iter(plans.values()))
    found: dict[str, MeasuredRun] = {}
    with (
        TemporaryDirectory(prefix="remat-") as folder,
        in_a_file(some, graph) as original,
        Bench(draw_feeds(graph, 0), "cpu", TIMEOUT_SECONDS, curve.subject.threads) as bench,
    ):
        before = _refuse_failed(bench.weigh(original.path, some.recorded.kind), original.path)
        for number, plan in enumerate(plans.values()):
            report(number, len(plans))
            found[str(plan.recorded.program)] = _race(plan, Path(folder), original.path, bench)
    usual = int(median(one.other for one in found.values()))
    fed = graph.resident

    def ran(one: MeasuredRun) -> Ran:
        return Ran(round(usual * one.own / max(one.other, 1)), None if one.held is None else fed + one.held)

    points = tuple(
        replace(point, ran=ran(found[str(point.plan.program)])) if point.plan else point for point in curve.points
    )
    return replace(curve, points=points, ran=Ran(usual, None if before.grew is None else fed + before.grew))


def _race(plan: Planned, folder: Path, original: Path, bench: Bench) -> MeasuredRun:
    path, session, places = folder / "model.onnx", plan.recorded.kind, plan.recorded.placement
    emitting.write(emitting.emit(plan), path)
    weighed = _refuse_failed(bench.weigh(path, session, placement=places), path)
    raced = _refuse_failed(bench.race((path, original), session, places, RACE_SECONDS), path)
    assert raced.times is not None
    return MeasuredRun(*raced.times, weighed.grew)


def _refuse_failed(reply: Reply, path: Path) -> Reply:
    if why := reply.refused or reply.failed:
        raise BadInput(f"{path.name} cannot be run: {why}")
    return reply
