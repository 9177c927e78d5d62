"""What `remat emit` does: replay the plan, rewrite its model, write it, say what it promises.

Invariant: a model is written only for a plan that `simulate` finds legal for that very model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import onnx

from profiles.strict import in_python
from remat_cli.errors import BadInput
from remat_cli.formats.files import check_apart, sha256, write_whole
from remat_cli.formats.planfile import PlanFile, replay
from remat_cli.model.graph import Graph
from remat_cli.planning.loading import load_planned
from remat_cli.planning.subject import Subject
from remat_cli.planning.untouched import is_untouched
from remat_cli.rewrite import Rewritten, original, rewrite
from remat_cli.rewrite.external import bring
from remat_cli.rewrite.functions import DOMAIN, with_functions
from remat_cli.runtime.session import CPP
from remat_cli.saying.report import table
from remat_cli.saying.units import show_bytes, show_time

LARGEST = 2**31 - 1  # bytes that protobuf writes in one message


@dataclass(frozen=True, slots=True)
class Emitted:
    """A rewritten model on disk, and what it came from."""

    path: Path
    plan: PlanFile
    subject: Subject
    rewritten: Rewritten


def emit(path: Path, output: Path | None, functions: bool = False) -> Emitted:
    """Write the model of the plan at `path`, made for the session that the plan is for."""
    plan, subject = load_planned(path)
    graph = subject.graph
    if graph is None:
        raise BadInput(f"{path} schedules the bare problem {subject.path.name}: there is no ONNX model to rewrite")
    statements, _ = replay(plan, subject.problem, subject.nodes, subject.values)
    destination = output or subject.beside(".remat.onnx")
    check_apart(destination, subject.path, path)
    if is_untouched(statements, subject) and not functions:
        return _unchanged(plan, subject, graph, destination)
    found = rewrite(graph, subject.problem, statements, subject.launch, plan.kind)
    if functions:
        found = replace(found, model=with_functions(graph, found.model))
    _stamp(found.model, plan, path, found)
    bring(found.model, subject.path, destination)
    if found.model.ByteSize() > LARGEST:
        raise BadInput(f"{destination} would exceed 2 GiB; save the model's weights as external data and solve again")
    write_whole(destination, found.model.SerializeToString(deterministic=True))
    return Emitted(destination, plan, subject, found)


def _unchanged(plan: PlanFile, subject: Subject, graph: Graph, destination: Path) -> Emitted:
    """The model's own bytes, where there is nothing to do."""
    found = original(graph, subject.problem)
    bring(found.model, subject.path, destination)
    write_whole(destination, subject.path.read_bytes())
    return Emitted(destination, plan, subject, found)


def _stamp(model: onnx.ModelProto, plan: PlanFile, path: Path, found: Rewritten) -> None:
    """Say in the model's metadata where it came from; what an earlier rewriting said goes."""
    own = {
        "remat.plan.sha256": sha256(path),
        "remat.model.sha256": plan.model.sha256,
        "remat.method": plan.method,
        "remat.budget": str(plan.budget),
        "remat.session": plan.session,
        "remat.peak.strict": str(found.promise.strict),
        "remat.peak.default": str(found.promise.default),
    }
    kept = [entry for entry in model.metadata_props if entry.key not in own]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    for key, value in own.items():
        model.metadata_props.add(key=key, value=value)


def as_object(emitted: Emitted) -> dict[str, Any]:
    found, plan = emitted.rewritten, emitted.plan
    return {
        "model": str(emitted.path),
        "nodes": len(found.model.graph.node),
        "clones": found.clones,
        "guards": found.guards,
        "anchors": found.anchors,
        "functions": len(found.model.functions),
        "session": plan.session,
        "budget": plan.budget,
        "peak": {"strict": found.promise.strict, "default": found.promise.default},
        "baseline_peak": {"strict": found.baseline.strict, "default": found.baseline.default},
        "time": found.promise.time,
        "baseline_time": found.baseline.time,
        "notes": notes(emitted),
    }


def notes(emitted: Emitted) -> list[str]:
    said = []
    if any(opset.domain == DOMAIN for opset in emitted.rewritten.model.opset_import):
        said.append("onnxruntime writes the functions out in an order of its own: with them, the peak is not promised")
    return said


def run(path: Path, output: Path | None, as_json: bool, quiet: bool, functions: bool = False) -> None:
    emitted = emit(path, output, functions)
    if as_json:
        click.echo(json.dumps(as_object(emitted)))
        return
    if quiet:
        return
    found = emitted.rewritten
    rows = [["predicted", "before", "after", "change"]]
    for name, before, after in (
        ("peak, strict session", found.baseline.strict, found.promise.strict),
        ("peak, default options", found.baseline.default, found.promise.default),
    ):
        if before is not None and after is not None:
            rows.append([name, show_bytes(before), show_bytes(after), f"{after / before - 1:+.2%}"])
    if found.baseline.time and found.promise.time:
        before, after = found.baseline.time, found.promise.time
        rows.append(["time, strict session", show_time(before), show_time(after), f"{after / before - 1:+.2%}"])
    click.echo(table(rows))
    for note in notes(emitted):
        click.echo(f"note: {note}")
    added = f"{found.clones} clones, {found.guards} guards, {found.anchors} anchors, {found.veils} veils"
    click.echo(f"wrote {emitted.path}: {added}")
    click.echo(f"\nThe strict session, in Python (or remat_cli.runtime.session.session(path)):\n\n{in_python()}\n")
    click.echo(f"In C++, where the strict session's order and reuse have no setters:\n\n{CPP}")
