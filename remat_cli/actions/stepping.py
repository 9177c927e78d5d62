"""The Python API's way to train: a plan, or a training graph, bound to a state. `remat_cli` brings it, lazily."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import onnx

from remat_cli.actions.api import CPU, Model, Plan, load_plan, session
from remat_cli.actions.recipes import recipe_of
from remat_cli.errors import BadInput, Usage
from remat_cli.gradient.updating import update_model
from remat_cli.ingest import ingest_content
from remat_cli.model.graph import Graph
from remat_cli.model.in_place import updates_of
from remat_cli.onnx_graph.load import load_with_tensors
from remat_cli.planning.loading import content_of
from remat_cli.planning.plans.planned import Planned
from remat_cli.runtime.in_place import in_place
from remat_cli.runtime.session import session_of
from remat_cli.training.state import State, default_rate, told_parts, values_of
from remat_cli.training.state import initial_state as first_state
from remat_cli.training.step import SMALL, Step, WrittenState

Values: TypeAlias = Model | Mapping[str, Any] | Any  # or a PyTorch module


def initial_state(forward: Values, step: Plan | Model) -> State:
    """What goes into the first step besides the data, by name: the forward model's weights, zeros for state.

    `forward`: the model that `step` was made from, or values by name, as a module's `state_dict()`.
    """
    return first_state(_values(forward), _model_of(_loaded(step)))


def step(
    plan: Plan | Model,
    forward: Values,
    *,
    optimizer: str | Any | None = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    betas: tuple[float, float] | None = None,
    eps: float | None = None,
    momentum: float | None = None,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    clip: float | None = None,
    accumulate: int = 1,
    providers: Sequence[Any] = CPU,
    keep_state: bool = False,
) -> Step:
    """A plan, or a training graph as it is, bound to the forward model's weights: `loss = step(batch)`.

    `forward`: the forward model, the PyTorch module, or values by name. A step that gives gradients takes its
    `optimizer` here, with what `grad` takes of it, which then updates once for every `accumulate` batches, by the mean
    of their gradients.

    New state is written in the place of the old, so that a run that breaks off leaves neither: the step then refuses to
    go on until `load` brings a checkpoint. `keep_state`: both are held, in so much more memory, and it can go on.
    """
    given = _loaded(plan)
    model = _model_of(given)
    parts, values = told_parts(model), _values(forward)
    inside = any(output.name == f"{name}_new" for name in parts.parameters for output in model.graph.output)
    settings = {"weight_decay": weight_decay, "betas": betas, "eps": eps, "momentum": momentum}
    _check(inside, optimizer, accumulate, {**settings, "groups": groups, "clip": clip})
    ready, written = _ready(plan, given, providers, keep_state)
    state, update = first_state(values, model), None
    rate = default_rate(model)
    if optimizer is not None:
        recipe = recipe_of(optimizer, {**settings, "learning_rate": learning_rate}, groups, clip, forward)
        made = update_model(model, recipe)
        rate = recipe.hyper.rate
        state |= first_state({**values, **state}, made)
        content = content_of(made)
        graph = None if keep_state else _held_once(content, providers)
        pairs = graph.in_place if graph else {}
        update = in_place(session_of(content, Path(), providers), pairs)
        written = replace(written, state=written.state.union(pairs.values()))
    return Step(ready, model, state, rate if learning_rate is None else learning_rate, update, accumulate, written)


def _ready(
    plan: Plan | Model, given: Planned | onnx.ModelProto, providers: Sequence[Any], keep_state: bool
) -> tuple[Any, WrittenState]:
    """The session, and what its runs write over."""
    if not isinstance(given, Planned):
        graph = None if keep_state else _held_once(content_of(given), providers)
        pairs = graph.in_place if graph else {}
        return in_place(_plain(plan, given, providers), pairs), _written(
            graph, [op.name for op in graph.ops] if graph else []
        )
    graph = None if keep_state or tuple(providers) != CPU else given.subject.graph
    order = [given.subject.nodes[node] for node in given.replayed()[0].order()]
    return session(given, providers=providers, keep_state=keep_state), _written(graph, order)


def _written(graph: Graph | None, order: Sequence[str]) -> WrittenState:
    """What a run of the ops in that order writes over, and which of them come before."""
    if graph is None:
        return WrittenState()
    large = {name for name in graph.in_place if graph.values[name].bytes > SMALL}
    writers = {op.name for op in graph.ops if large.intersection(op.writes)}
    first = next((place for place, name in enumerate(order) if name in writers), len(order))
    return WrittenState(frozenset(graph.in_place.values()), frozenset(order[:first]).difference(order[first:]))


def _held_once(model: bytes, providers: Sequence[Any]) -> Graph | None:
    """The graph with what a strict session on a CPU can write over inputs; None where sizes are not known."""
    if tuple(providers) != CPU:
        return None
    try:
        graph = ingest_content(model)
        return replace(graph, in_place=updates_of(graph, None))
    except BadInput:
        return None


def _check(inside: bool, optimizer: Any, accumulate: int, settings: Mapping[str, Any]) -> None:
    if inside and (said := [name for name, value in settings.items() if value is not None]):
        raise Usage(f"this step updates its parameters itself; say {', '.join(said)} to grad")
    if inside and (optimizer is not None or accumulate != 1):
        raise Usage("this step updates its parameters itself; to accumulate, make it without --optimizer, and say here")
    if not inside and optimizer is None:
        raise Usage("this step gives gradients; say what is done with them: optimizer='adamw', or grad --optimizer")
    if accumulate < 1:
        raise Usage(f"gradients of {accumulate} batches cannot be accumulated")


def _loaded(given: Plan | Model) -> Planned | onnx.ModelProto:
    if isinstance(given, Planned | onnx.ModelProto):
        return given
    if not isinstance(given, str | os.PathLike):
        raise Usage(f"a step is of a plan or a training graph, or a path to one, not of a {type(given).__name__}")
    return load_plan(given) if os.fspath(given).endswith(".json") else load_with_tensors(Path(given))


def _model_of(given: Planned | onnx.ModelProto) -> onnx.ModelProto:
    """The training graph; a plan's may be rewritten, but not in what goes in and comes out."""
    if not isinstance(given, Planned):
        return given
    if given.subject.graph is None:
        raise BadInput("the plan is for a bare problem, which no runtime can run")
    return given.subject.graph.model


def _plain(plan: Any, model: onnx.ModelProto, providers: Sequence[Any]) -> Any:
    folder = Path() if isinstance(plan, onnx.ModelProto) else Path(plan).resolve().parent
    return session_of(content_of(model), folder, providers)


def _values(forward: Values) -> Mapping[str, Any]:
    if isinstance(forward, Mapping):
        return forward
    if hasattr(forward, "state_dict"):
        return dict(forward.state_dict())
    return values_of(forward if isinstance(forward, onnx.ModelProto) else load_with_tensors(Path(forward)))
