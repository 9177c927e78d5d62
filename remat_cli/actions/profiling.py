"""What `remat profile` does: signatures, measurements, the whole graph, and the cost file.

Invariant: the file is written whole, and only once every op has a cost; pinned entries of an earlier file stay.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from profiles import cache as caches
from profiles import device as devices
from profiles import roofline, survey
from profiles.cache import Cache
from profiles.costs import BadCosts, Costs, OpCost, dump, load, over_batches
from profiles.device import Device
from profiles.running import CannotRun
from profiles.survey import Ops, Step
from remat_cli.actions import whole_graph
from remat_cli.errors import BadInput, Usage
from remat_cli.formats.files import check_apart, write_whole
from remat_cli.ingest import ingest
from remat_cli.model.graph import Graph
from remat_cli.model.signatures import ops_of
from remat_cli.saying.units import show_time

NAMED = 5  # of the ops that could not be measured


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, parsed."""

    device: str
    estimate: str | None
    batches: tuple[int, ...] | None
    batch_dim: str | None
    compare: bool
    dry_run: bool
    strict: bool
    no_cache: bool
    no_whole: bool
    threads: int | None
    time_limit: float
    dims: tuple[tuple[str, int], ...]
    output: Path | None
    as_json: bool
    quiet: bool


@dataclass(frozen=True, slots=True)
class Found:
    """One graph's costs, and what is to be said of them."""

    graph: Graph
    ops: Ops
    costs: Costs
    refused: Mapping[str, str]
    measured: int = 0  # signatures measured just now
    outliers: tuple[str, ...] = ()  # classes of ops that take several times as long in the graph as alone, or less


def run(model: Path, settings: Settings) -> None:
    """Profile, write and tell; raises what the exit code should be for."""
    device, cache = _where(settings)
    graphs = _graphs(model, settings)
    if settings.dry_run:
        _tell_plan([ops_of(graph) for graph in graphs], cache, device, settings)
        return
    found = [_profile(graph, device, cache, settings, len(graphs)) for graph in graphs]
    destination = settings.output or model.with_name(model.name.removesuffix(".onnx") + ".costs.yaml")
    check_apart(destination, model)
    last = found[-1]
    costs = last.costs if len(found) == 1 else _fitted(found, settings, model)
    costs = _keep_pins(replace(costs, model=_path_from(destination, model)), destination)
    write_whole(destination, dump(costs))
    last = replace(last, costs=costs)
    difference = (
        whole_graph.compare(last.graph, last.ops, costs, device, settings.time_limit) if settings.compare else None
    )
    _tell(last, destination, settings, difference)


def _where(settings: Settings) -> tuple[Device, Cache]:
    known = [*roofline.names(), roofline.FLOPS]
    if settings.estimate is not None and settings.estimate not in known:
        raise Usage(f"there is no device '{settings.estimate}' on paper; the devices are {', '.join(known)}")
    try:
        device = devices.find(settings.device, settings.threads)
    except devices.NoDevice as error:
        raise Usage(str(error)) from error
    return device, Cache(device, None if settings.no_cache else caches.folder())


def _graphs(model: Path, settings: Settings) -> list[Graph]:
    """The model with its dimensions bound: once, or once for each batch size, the largest last."""
    dims = dict(settings.dims)
    if not settings.batches:
        if settings.batch_dim is not None:
            raise Usage("--batch-dim says which dimension --batch sets: give both, or bind it with --dim NAME=SIZE")
        return [ingest(model, dims)]
    name = whole_graph.batch_dim(model, settings.batch_dim, dims)
    return [ingest(model, {**dims, name: size}) for size in settings.batches]


def _profile(graph: Graph, device: Device, cache: Cache, settings: Settings, graphs: int) -> Found:
    ops = ops_of(graph)
    if settings.estimate is not None:
        return _from_paper(graph, ops, settings.estimate)
    with _Bar(settings) as bar:
        wanted = len(survey.missing(ops, cache))
        if wanted:
            _warn_if_busy(device, settings)
        bar.say("the whole graph")
        earlier = _timed_before(graph, ops, device, cache, settings)
        survey.measure_missing(ops, device, cache, settings.time_limit / graphs, bar)
        refused = survey.refused(ops, cache)
        if refused and settings.strict:
            raise BadInput(f"{graph.path}: {_name_refused(refused, ops)}; without --strict they are estimated")
        alone = survey.alone(ops, cache, device)
        bar.say("the whole graph")
        costs, whole = _in_the_whole(graph, ops, alone, device, cache, settings, earlier)
    found = _costs(graph, device.described(), costs, whole, survey.dated(ops, cache))
    return Found(graph, ops, found, refused, wanted, tuple(survey.outliers(ops, alone, costs)))


def _from_paper(graph: Graph, ops: Ops, where: str) -> Found:
    ops_costs = survey.estimated(ops, where)
    if where == roofline.FLOPS:
        device = {"kind": "paper", "name": "FLOPs: one takes one unit of time"}
        return Found(graph, ops, replace(_costs(graph, device, ops_costs, {}, ""), unit="flops"), {})
    paper = roofline.device(where)
    device = {"kind": "paper", "name": paper.name, "source": paper.source}
    return Found(graph, ops, _costs(graph, device, ops_costs, {}, ""), {})


def _costs(
    graph: Graph, device: Mapping[str, Any], ops: Mapping[str, OpCost], whole: Mapping[str, Any], date: str
) -> Costs:
    return Costs(graph.path.name, graph.sha256, graph.dims, device, ops, whole, date)


def _warn_if_busy(device: Device, settings: Settings) -> None:
    """Other people's work on this machine ends up in the times."""
    load = os.getloadavg()[0]
    if load > 0.5 * device.threads and not settings.quiet:
        click.echo(f"remat: this machine is busy (load {load:.1f}); what is measured now may read high", err=True)


def _timed_before(graph: Graph, ops: Ops, device: Device, cache: Cache, settings: Settings) -> tuple[int, ...]:
    """The whole graph's times before its ops are measured: a machine is not as fast at all times."""
    alone = survey.alone(ops, cache, device)
    if settings.no_whole or survey.recall(ops, cache, alone):
        return ()
    try:
        return whole_graph.time(graph, ops, alone, device, settings.time_limit)
    except CannotRun:  # this is said when it is tried again
        return ()


def _in_the_whole(
    graph: Graph,
    ops: Ops,
    alone: Mapping[str, OpCost],
    device: Device,
    cache: Cache,
    settings: Settings,
    earlier: tuple[int, ...],
) -> tuple[dict[str, OpCost], dict[str, Any]]:
    """The ops' costs scaled to a run of the whole graph, and what the file says of that run."""
    said: dict[str, Any] = {"alone": sum(cost.ns for cost in alone.values()), "session": cache.session_ns or 0}
    record = survey.recall(ops, cache, alone)
    if record is None and not settings.no_whole:
        try:
            whole = whole_graph.run(graph, ops, alone, device, settings.time_limit, earlier)
        except CannotRun as refused:
            said["whole_graph"] = f"not run: {refused}"
        else:
            survey.keep(ops, cache, survey.calibrated(ops, alone, whole, device), whole)
            record = cache.wholes[ops.key]
    if record is None:
        return survey.scaled(ops, alone, None, {}), said
    calibration = survey.calibration_of(record)
    costs = survey.scaled(ops, alone, calibration, record["inside"])
    said["launch"] = calibration.launch
    if ops.key not in cache.wholes:
        return costs, {**said, "whole_graph": "not run: scaled as a graph of the same ops was"}
    total = sum(cost.ns for cost in costs.values())
    said |= {"whole_graph": record["ns"], "difference": f"{total / max(1, record['ns']) - 1:+.2%}"}
    return costs, {**said, "median": record.get("median"), "spread": record["spread"], "runs": record["runs"]}


def _fitted(found: list[Found], settings: Settings, model: Path) -> Costs:
    """The largest batch's costs, with a line through all for each op."""
    name = whole_graph.batch_dim(model, settings.batch_dim, dict(settings.dims))
    return over_batches({one.costs.dims[name]: one.costs for one in found}, name)


def _keep_pins(costs: Costs, destination: Path) -> Costs:
    """An earlier file's pinned entries outlive it."""
    if not destination.is_file():
        return costs
    try:
        return costs.keeping_pins(load(destination))
    except BadCosts as error:
        raise BadInput(f"{error}; correct it, or delete it to have it made anew") from error


def _path_from(destination: Path, model: Path) -> str:
    return os.path.relpath(model.resolve(), destination.resolve().parent)


def _name_refused(refused: Mapping[str, str], ops: Ops) -> str:
    kinds: dict[str, list[str]] = {}
    for name in refused:
        kinds.setdefault(ops.signatures[name].op_type, []).append(name)
    words = [
        f"{kind} ({names[0]}{', ...' if len(names) > 1 else ''}: {refused[names[0]]})" for kind, names in kinds.items()
    ]
    more = f" and {len(words) - NAMED} more kinds" if len(words) > NAMED else ""
    return f"{len(refused)} ops cannot be measured: {'; '.join(words[:NAMED])}{more}"


def _tell_plan(graphs: list[Ops], cache: Cache, device: Device, settings: Settings) -> None:
    wanted = {key: signature for ops in graphs for key, signature in survey.missing(ops, cache).items()}
    distinct = {key for ops in graphs for key in ops.distinct()}
    seconds = 0.0 if settings.estimate else survey.how_long(graphs, cache, device, settings.time_limit)
    plan = {
        "ops": sum(len(ops.signatures) for ops in graphs),
        "signatures": len(distinct),
        "cached": len(distinct) - len(wanted),
        "seconds": round(seconds, 1),
    }
    if settings.as_json:
        click.echo(json.dumps(plan))
    else:
        words = f"{plan['ops']} ops, {plan['signatures']} signatures, {plan['cached']} of them measured before"
        click.echo(f"{words}; about {show_time(seconds * 1e9)} to go")


def _tell(found: Found, destination: Path, settings: Settings, difference: whole_graph.Difference | None) -> None:
    costs = found.costs
    if settings.as_json:
        facts = {
            "costs": str(destination),
            "ops": len(costs.ops),
            "signatures": len(found.ops.distinct()),
            "measured_now": found.measured,
            "refused": dict(found.refused),
            "sum": costs.total,
            "unit": costs.unit,
            **costs.whole,
        }
        click.echo(json.dumps(facts | ({"compare": difference.as_object()} if difference else {})))
        return
    if settings.quiet:
        return
    total = f"{costs.total} FLOPs" if costs.unit == "flops" else show_time(costs.total)
    click.echo(f"{destination}: {len(costs.ops)} ops, {total}; {_where_from(found, settings)}")
    if "whole_graph" in costs.whole:
        click.echo(_against_whole(costs))
    if found.outliers:
        click.echo(f"remat: unlike alone, in the graph: {', '.join(found.outliers)}", err=True)
    if found.refused:
        click.echo(f"estimated, since {_name_refused(found.refused, found.ops)}", err=True)
    if difference:
        click.echo(difference.as_text())


def _where_from(found: Found, settings: Settings) -> str:
    if settings.estimate is not None:
        return "estimated, nothing was run"
    return f"{found.measured} of {len(found.ops.distinct())} signatures measured now"


def _against_whole(costs: Costs) -> str:
    """Both sums beside the time of the whole graph."""
    whole, alone, total = costs.whole["whole_graph"], costs.whole["alone"], costs.total
    if not isinstance(whole, int):
        return f"one by one, alone, the ops take {show_time(alone)}; the whole graph was {whole}"
    median = costs.whole.get("median")
    usual = f" ({show_time(median)} as a median)" if isinstance(median, int) else ""
    near = f"{alone / max(1, whole) - 1:+.1%}"
    return (
        f"the whole graph took {show_time(whole)} undisturbed{usual}; "
        f"its ops, one by one, alone, {show_time(alone)} ({near}); "
        f"scaled by class to agree with it, {show_time(total)} ({total / max(1, whole) - 1:+.1%})"
    )


class _Bar:
    """The op being timed and the time left, on one line of the terminal; a terminal only."""

    def __init__(self, settings: Settings) -> None:
        self.shown = sys.stderr.isatty() and not settings.quiet

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self.say("")

    def __call__(self, step: Step) -> None:
        filled = 20 * step.done // max(1, step.total)
        bar = "#" * filled + "." * (20 - filled)
        self.say(f"[{bar}] {step.done}/{step.total}  {show_time(step.left * 1e9)} left  {step.what[:60]}")

    def say(self, words: str) -> None:
        if self.shown:
            sys.stderr.write("\r\033[K" + words)
            sys.stderr.flush()
