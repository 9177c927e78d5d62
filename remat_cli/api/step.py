"""`remat.step` and `remat.initial_state`: a plan, or a training graph, bound to the state that it trains."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, Unpack

import onnx

from profiles.system import let_go
from remat_cli.actions.emitting import graph_of
from remat_cli.actions.recipes import recipe_of
from remat_cli.actions.session_parts import SessionParts
from remat_cli.actions.session_writing import written_over
from remat_cli.api.given import CPU, Model, Plan, check_keywords, path_of, plan_of
from remat_cli.api.keywords import OptimizerSettings, ScheduleSettings
from remat_cli.api.sessions import parts_of, providers_of, session_on
from remat_cli.arguments import number, switch, whole_number
from remat_cli.errors import BadInput, Usage
from remat_cli.gradient.assemble import update_model
from remat_cli.ingest import ingest_content
from remat_cli.model.graph import Graph
from remat_cli.model.in_place import updates_of
from remat_cli.model.step_parts import optimizer_of
from remat_cli.onnx_graph.load import content_of, load_with_tensors
from remat_cli.plans.planned import Planned
from remat_cli.runtime.in_place import in_place
from remat_cli.runtime.session import refusals_in_words, session_of
from remat_cli.training.failing import NOTHING_WRITTEN, WrittenState
from remat_cli.training.rates import Regime, rate_schedule
from remat_cli.training.state import State, default_rate, parts_told, values_of
from remat_cli.training.state import initial_state as first_state
from remat_cli.training.step import Step

Values: TypeAlias = Model | Mapping[str, Any] | Any  # or a PyTorch module


def initial_state(forward: Values, step: Plan | Model) -> State:
    """What goes into the first step besides the data, by name: the forward model's weights, zeros for state.

    - `forward`: the model that the step was made from, the PyTorch module, or values by name.
    - `step`: a plan, or a training graph, or the path of either.

    Example:

        state = remat.initial_state("forward.onnx", plan)
        loss, *rest = session.run(None, {**state, **batch})
    """
    return first_state(_values(forward), _model_of(_loaded(step)))


class StepSettings(OptimizerSettings, ScheduleSettings, total=False):
    """What `step` takes of the optimizer and of the schedule of its learning rate."""


def step(
    plan: Plan | Model,
    forward: Values | None = None,
    *,
    optimizer: str | Any | None = None,
    schedule: str | Callable[[int], float] | None = None,
    accumulate: int = 1,
    providers: Sequence[Any] = CPU,
    keep_state: bool = False,
    **settings: Unpack[StepSettings],
) -> Step:
    """A plan, or a training graph as it is, bound to the forward model's weights: `loss = step(batch)`.

    - `plan`: what `solve` gave, or a training graph that `grad` made, or the path of either.
    - `forward`: the forward model, the PyTorch module, or values by name.
    - `optimizer`: of a step that gives gradients, with its settings, as `grad` takes them (`weight_decay`, `betas`,
      `eps`, `momentum`, `groups`, `clip`); `accumulate`: it updates once for so many batches, by the mean of their
      gradients. A step with the update inside takes neither.
    - `learning_rate`: of either kind of step.
    - `schedule`: what becomes of the learning rate: "constant", "linear" or "cosine" down to `end` times it (by default
      0) at update `steps`, "step" (times `factor` after `every` updates), "exponential" (times `factor` after each
      one), or a function from the number of updates to a factor. `warmup`: so many updates first, from the share
      `start` of the rate.
    - `providers`: as onnxruntime takes them.
    - `keep_state`: new state is written in the place of the old, so that a run that breaks off leaves neither: the step
      then refuses to go on until `load` brings a checkpoint. With this both are held, in so much more memory.

    Example:

        step = remat.step(plan, module, learning_rate=1e-3, schedule="cosine", steps=1000, warmup=100)
        for batch in loader:
            loss = step(batch)
    """
    check_keywords(settings, step, OptimizerSettings, ScheduleSettings)
    if forward is None:
        raise Usage("a step begins with weights: give the module, or the forward model, as in remat.step(plan, module)")
    given, wanted, keep_state = _loaded(plan), providers_of(providers), switch(keep_state, "keep_state")
    own, timing = _divided(settings)
    course = rate_schedule(schedule, timing)
    with _opened(given) as opened:
        model, values = opened.model, _values(forward)
        _check(_updates_itself(model), optimizer, whole_number(accumulate, "accumulate", 1), own)
        ready, written = opened.session(wanted, keep_state)
    state = first_state(values, model)
    if optimizer is None:
        regime = Regime(
            number(own.get("learning_rate", default_rate(model)), "learning_rate"), course, optimizer_of(model)
        )
        return Step(ready, model, state, regime, None, written)
    recipe = recipe_of(optimizer, own, forward)
    regime = Regime(recipe.hyper.rate, course, recipe.described(), accumulate)
    made = update_model(model, recipe)
    update, graph = _session_of(made, Path(), wanted, keep_state)
    written = replace(written, state=written.state.union(graph.in_place.values() if graph else ()))
    return Step(ready, model, state | first_state({**values, **state}, made), regime, update, written)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A step's model, of a plan without its nodes, and what makes its session and says what runs write over."""

    model: onnx.ModelProto
    session: Callable[[tuple[Any, ...], bool], tuple[Any, WrittenState]]


@contextmanager
def _opened(given: Planned | Path | onnx.ModelProto) -> Iterator[_Opened]:
    if not isinstance(given, Planned) and not _is_plan(given):
        model = load_with_tensors(given)
        folder = given.resolve().parent if isinstance(given, Path) else Path()
        yield _Opened(model, partial(_of_model, model, folder))
        return
    with parts_of(given) as parts:
        yield _Opened(parts.framed(), partial(_of_plan, parts))


def _of_plan(parts: SessionParts, providers: tuple[Any, ...], keep_state: bool) -> tuple[Any, WrittenState]:
    made = session_on(parts, providers, keep_state)
    return made, NOTHING_WRITTEN if keep_state or providers != CPU else parts.written


def _of_model(
    model: onnx.ModelProto, folder: Path, providers: tuple[Any, ...], keep_state: bool
) -> tuple[Any, WrittenState]:
    made, graph = _session_of(model, folder, providers, keep_state)
    let_go()
    return made, written_over(graph, model, [op.name for op in graph.ops] if graph else [])


def _divided(settings: StepSettings) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of the optimizer, and of the schedule."""
    said = {name: value for name, value in settings.items() if value is not None}
    own = {name: value for name, value in said.items() if name in OptimizerSettings.__annotations__}
    return own, {name: value for name, value in said.items() if name not in own}


def _session_of(
    model: onnx.ModelProto, folder: Path, providers: tuple[Any, ...], keep_state: bool
) -> tuple[Any, Graph | None]:
    """A session in the runtime's own memory, and the graph with what it writes over, where it does."""
    content = content_of(model)
    graph = None if keep_state else _held_once(content, providers)
    with refusals_in_words():
        made = session_of(content, folder, providers)
    return in_place(made, graph.in_place if graph else {}), graph


def _held_once(model: bytes, providers: Sequence[Any]) -> Graph | None:
    """The graph with what a strict session on a CPU can write over inputs; None where sizes are not known."""
    if tuple(providers) != CPU:
        return None
    try:
        graph = ingest_content(model)
        return replace(graph, in_place=updates_of(graph, True))
    except BadInput:
        return None


def _check(inside: bool, optimizer: Any, accumulate: int, settings: Mapping[str, Any]) -> None:
    if inside and (said := [name for name in settings if name != "learning_rate"]):
        raise Usage(f"this step updates its parameters itself; say {', '.join(said)} to grad")
    if inside and (optimizer is not None or accumulate != 1):
        raise Usage("this step updates its parameters itself; to accumulate, make it without --optimizer, and say here")
    if not inside and optimizer is None:
        raise Usage("this step gives gradients; say what is done with them: optimizer='adamw', or grad --optimizer")


def _loaded(given: Plan | Model) -> Planned | Path | onnx.ModelProto:
    if isinstance(given, Planned | onnx.ModelProto):
        return given
    if not isinstance(given, str | os.PathLike):
        raise Usage(
            "a step is of a plan or a training graph, or a path to one, which comes before the module; "
            f"not of a {type(given).__name__}"
        )
    return path_of(given, "a plan or a training graph")


def _is_plan(given: Path | onnx.ModelProto) -> TypeGuard[Path]:
    return isinstance(given, Path) and given.suffix == ".json"


def _updates_itself(model: onnx.ModelProto) -> bool:
    parameters = parts_told(model).parameters
    return any(output.name == f"{name}_new" for name in parameters for output in model.graph.output)


def _model_of(given: Planned | Path | onnx.ModelProto) -> onnx.ModelProto:
    """The training graph; a plan's may be rewritten, but not in what goes in and comes out."""
    if isinstance(given, Planned) or _is_plan(given):
        return graph_of(plan_of(given)).model
    return load_with_tensors(given)


def _values(forward: Values) -> Mapping[str, Any]:
    if isinstance(forward, Mapping):
        return forward
    if hasattr(forward, "state_dict"):
        return dict(forward.state_dict())
    if not isinstance(forward, onnx.ModelProto | str | os.PathLike):
        raise Usage(f"weights are those of a forward model, a PyTorch module, or by name; not of {_named(forward)}")
    if isinstance(forward, onnx.ModelProto):
        return values_of(forward)
    if os.fspath(forward).endswith((".pt", ".pth")):
        raise Usage(f"{os.fspath(forward)} is PyTorch's: give what torch.load('{os.fspath(forward)}') gives, by name")
    return values_of(load_with_tensors(path_of(forward, "a forward model")))


def _named(given: object) -> str:
    return "a plan" if isinstance(given, Planned) else f"a {type(given).__name__}"
