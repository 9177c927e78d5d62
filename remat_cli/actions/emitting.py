"""What `emit` does, on values: replay a plan, rewrite its model, say in its metadata where it came from.

Invariant: a model is made only of a plan that `simulate` finds legal for that very model.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from remat_cli.errors import BadInput, Mismatch
from remat_cli.formats.files import sha256, write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.model.graph import Graph
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import DEFAULT
from remat_cli.onnx_graph.attributes import say
from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.untouched import is_as_it_is, is_untouched
from remat_cli.plans.figures import hold_to_model
from remat_cli.plans.planned import Planned
from remat_cli.rewrite import Rewritten
from remat_cli.rewrite.external import bring
from remat_cli.rewrite.functions import DOMAIN, with_functions
from remat_cli.units import show_bytes
from solvers.problem import Problem

MESSAGE_BYTES = 2**31 - 1  # bytes that protobuf writes in one message
FUNCTIONS = "ONNX Runtime writes the functions out in an order of its own, so the peak is not promised with them."
HELD_ONCE = (
    "New state ({}) is written over the old by remat.session and remat.step. Other programs hold both, unless they bind"
    " each output to its input, as {!r} to {!r}. The metadata `remat.in_place` lists all pairs."
)
IN_ITS_ORDER = " That is safe only in the strict session, which keeps the file's order."
ASTRAY = "ONNX Runtime's optimizers would pick other kernels for this plan than for the original, with other results"
UNPINNED = "ONNX Runtime's optimizers might have new state written over the old before all of that is read"
NAMED_VALUES = 3  # of the values around which it would


@dataclass(frozen=True, slots=True)
class Emitted:
    """A rewritten model, and what it came from. `before`: what the original needs, in its file's order, in the plan's
    kind of session."""

    plan: Planned
    rewritten: Rewritten
    before: Promise
    unchanged: bool = False  # there was nothing to do: it is the original

    @property
    def model(self) -> onnx.ModelProto:
        return self.rewritten.model

    @property
    def promise(self) -> Promise:
        """What the plan promises, with what its model is seen to need."""
        figures = self.rewritten.promise
        return replace(self.plan.recorded.promises, strict=figures.strict, default=figures.default)

    def before_by_default(self) -> int | None:
        """The live bytes of the original with default options, which are looked for here: few ask."""
        return target_of(DEFAULT).original(*_as_given(self.plan)).promise.default

    def notes(self) -> list[str]:
        found = [FUNCTIONS] if any(opset.domain == DOMAIN for opset in self.model.opset_import) else []
        for output, old in list(self.plan.recorded.in_place.items())[:1]:
            held = HELD_ONCE.format(show_bytes(self.plan.subject.held_once), output, old)
            found.append(held + IN_ITS_ORDER if self.plan.recorded.kind.keeps_order else held)
        return found


def emit(plan: Planned, functions: bool = False) -> Emitted:
    """The model of the plan, for the session it is for; its external tensors are where the original's are."""
    graph = graph_of(plan)
    statements, _ = plan.replayed()
    as_given, target = _as_given(plan), target_of(plan.recorded.kind)
    if is_untouched(statements, plan.subject) and not functions:
        unchanged = replace(target.original(*as_given), model=onnx.ModelProto.FromString(_bytes(plan)))
        hold_to_model(plan.recorded, plan.subject, unchanged)
        return Emitted(plan, unchanged, unchanged.promise, unchanged=True)
    if is_as_it_is(statements, plan.subject):
        found = target.original(*as_given)  # whose ops are not the file's
        found = replace(found, model=deepcopy(found.model))
    else:
        found = target.rewrite_surely(plan.subject, statements, plan.recorded.promises.hiding or 0)
    if found.astray:
        raise Mismatch(f"{ASTRAY}: around {', '.join(sorted(found.astray)[:NAMED_VALUES])}; solve again")
    if found.unpinned:
        raise Mismatch(f"{UNPINNED}: {', '.join(sorted(found.unpinned)[:NAMED_VALUES])}; solve again")
    if functions:
        found = replace(found, model=with_functions(graph, found.model))
    hold_to_model(plan.recorded, plan.subject, found)
    _stamp(found.model, plan, found)
    return Emitted(plan, found, target.original(*as_given).promise)


def _as_given(plan: Planned) -> tuple[Graph, Problem]:
    as_given = plan.subject.as_given
    return graph_of(replace(plan, subject=as_given)), as_given.problem


def _bytes(plan: Planned) -> bytes:
    return plan.subject.content if plan.subject.content is not None else plan.subject.path.read_bytes()


def graph_of(plan: Planned) -> Graph:
    graph = plan.subject.graph
    if graph is None:
        what, bare = plan.path or "the plan", plan.subject.path.name
        raise BadInput(f"{what} schedules the bare problem {bare}: there is no ONNX model to rewrite or run")
    return graph


def given_graph_of(plan: Planned) -> Graph:
    """The graph of the model as it was given, with what the plan holds once."""
    graph = graph_of(plan)
    whole = plan.subject.whole
    return graph if whole is None else replace(graph_of(replace(plan, subject=whole)), in_place=graph.in_place)


def place_of(plan: Planned, output: Path | None = None) -> Path:
    """Where the model of a plan is written: nothing that it was made from is written over."""
    destination = output or plan.subject.beside(f"{_middle(plan)}.remat.onnx")
    check_place(destination, FileKind.MODEL, plan.subject.path, plan.path)
    return destination


def _middle(plan: Planned) -> str:
    """What the plan's file is called between its model's name and `.plan.json`: `.70%` of `m.70%.plan.json`."""
    name, stem = plan.path.name if plan.path else "", plan.subject.stem
    named = name.startswith(f"{stem}.") and name.endswith(".plan.json")
    return name.removeprefix(stem).removesuffix(".plan.json") if named else ""


def write(emitted: Emitted, destination: Path) -> None:
    """The model's file, and its external tensors beside it if they are not."""
    model = emitted.model
    bring(model, emitted.plan.subject.path, destination)
    if model.ByteSize() > MESSAGE_BYTES:
        raise BadInput(f"{destination} would exceed 2 GiB; save the model's weights as external data and solve again")
    moved = destination.resolve().parent != emitted.plan.subject.path.resolve().parent
    as_given = emitted.unchanged and not moved
    write_whole(destination, _bytes(emitted.plan) if as_given else model.SerializeToString(deterministic=True))


def _stamp(model: onnx.ModelProto, plan: Planned, found: Rewritten) -> None:
    """Say in the model's metadata where it came from; what an earlier rewriting said goes."""
    own = {
        "remat.plan.sha256": sha256(plan.path) if plan.path else "",
        "remat.model.sha256": plan.recorded.model.sha256,
        "remat.method": plan.recorded.method,
        "remat.budget": str(plan.budget),
        "remat.session": plan.recorded.session,
        **({"remat.in_place": json.dumps(plan.recorded.in_place)} if plan.recorded.in_place else {}),
        "remat.peak.strict": str(found.promise.strict),
        "remat.peak.default": str(found.promise.default),
    }
    say(model, own)
