"""What a program does with a plan: `remat.emit`, `verify`, `session` and `load_plan`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx

from profiles.cuda import NoCuda
from remat_cli.actions import emitting, verifying
from remat_cli.actions.verifying import TIMEOUT, Trial, Verified
from remat_cli.api import given
from remat_cli.api.given import CPU, File, Plan
from remat_cli.arguments import number, switch, word
from remat_cli.checking.compare import Tolerance
from remat_cli.errors import BadInput, Usage, meant
from remat_cli.model.sessions import STOCK
from remat_cli.notes.kinds import PlanNote
from remat_cli.notes.words import sentences
from remat_cli.planning.loading import content_of, load_planned
from remat_cli.planning.plans.planned import Planned
from remat_cli.runtime.in_place import in_place
from remat_cli.runtime.session import by_default_of, placement_in, planned_of, session_of

CODE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")  # what the runtime's errors begin with


def emit(plan: Plan, *, functions: bool = False) -> onnx.ModelProto:
    """The rewritten model. Its external tensors, if any, are named as in the original model.

    - `plan`: what `solve` gave, or its file's path.
    - `functions`: blocks of ops that are computed again are local functions of the model.

    Example:

        onnx.save(remat.emit("train.plan.json"), "train.remat.onnx")
    """
    return emitting.emit(given.plan_of(plan), switch(functions, "functions")).model


def verify(
    plan: Plan,
    *,
    feeds: File | Mapping[str, Any] | None = None,
    seed: int = 0,
    provider: str = "cpu",
    timeout: float | str = TIMEOUT,
    rtol: float = 0.0,
    atol: float = 0.0,
    level: str = "all",
    timing: float | str = 0.0,
) -> Verified:
    """Run both models on the real runtime, each in a process of its own.

    - `plan`: what `solve` gave, or its file's path.
    - `feeds`: inputs by name, or a file of them; by default random and valid, by the `seed`.
    - `provider`: "cpu" or "cuda". `timeout`: of each run.
    - `rtol`, `atol`: how far results may be off; by default the bits are the same.
    - `level`: of a default session's optimizations.
    - `timing`: seconds for timing both, their runs taking turns; what they took is `report.timed`.

    Raises Mismatch where a promise fails.

    Example:

        assert remat.verify("train.plan.json").ok
    """
    if not isinstance(feeds, str | os.PathLike | Mapping | None):
        raise Usage(f"feeds are arrays by name, or a file of them, not {type(feeds).__name__}")
    trial = Trial(
        feeds=given.path_of(feeds, "feeds") if isinstance(feeds, str | os.PathLike) else feeds,
        seed=given.seed_of(seed),
        provider=word(provider, "provider"),
        timeout=given.seconds_of(timeout, "timeout"),
        near=Tolerance(number(rtol, "rtol"), number(atol, "atol")),
        level=word(level, "level"),
        seconds=given.seconds_of(timing, "timing"),
    )
    return verifying.verified(given.plan_of(plan), trial).or_raised("the plan")


def session(plan: Plan, *, providers: Sequence[Any] = CPU, keep_state: bool = False) -> Any:
    """An onnxruntime.InferenceSession on the rewritten model that keeps the plan's promise: of the plan's kind.

    - `plan`: what `solve` gave, or its file's path.
    - `providers`: as onnxruntime takes them. On a CPU every value lies where the plan says, or where the first run
      shows that it can, if the plan's costs are estimates; others keep their own arenas.
    - `keep_state`: outputs that the plan holds once are written over the arrays given for their inputs, which `run`
      gives back as those outputs. With this they are not, and both are held, in so much more memory.

    It runs on as many threads as the costs are for, since kernels work in memory of each thread's own.

    Example:

        session = remat.session("train.plan.json")
        loss, *rest = session.run(None, feeds)
    """
    planned, wanted, keep_state = given.plan_of(plan), providers_of(providers), switch(keep_state, "keep_state")
    if wanted == CPU and not keep_state:
        given.warn(sentences(note for note in planned.subject.notes if note.kind == PlanNote.WRITES_OVER))
    with refusals_in_words():
        return session_on(emitting.emit(planned).model, planned, wanted, keep_state)


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """What the runtime says where it cannot make a session, as an error of ours: it lacks a kernel, or a device."""
    try:
        yield
    except NoCuda as error:
        raise Usage(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith("onnxruntime."):
            raise
        words = CODE.sub("", " ".join(str(error).split()))
        raise BadInput(f"onnxruntime cannot make a session of the model: {words}") from error


def session_on(model: onnx.ModelProto, planned: Planned, providers: tuple[Any, ...], keep_state: bool) -> Any:
    """The session on the model that `emit` made of the plan."""
    made, graph = _session(model, planned, providers), planned.subject.graph
    if graph is None or providers != CPU:
        return made
    return in_place(made, graph.in_place, apart=keep_state)


def providers_of(providers: Any) -> tuple[Any, ...]:
    """Providers, of which one may stand alone."""
    from onnxruntime import get_available_providers

    wanted = (providers,) if isinstance(providers, str) else given.items_of(providers, "providers")
    if not wanted:
        raise Usage("providers name at least one, such as 'CPUExecutionProvider'")
    known = get_available_providers()
    names = [str(one[0]) if isinstance(one, tuple) and one else str(one) for one in wanted]
    if unknown := [name for name in names if name not in known]:
        raise Usage(f"onnxruntime has no provider '{unknown[0]}' here; {meant(unknown[0], known)}")
    return wanted


def _session(model: onnx.ModelProto, planned: Planned, providers: Sequence[Any]) -> Any:
    content, folder = content_of(model), planned.subject.path.resolve().parent
    places, threads = planned.recorded.placement, planned.subject.threads
    if planned.recorded.kind.runtime == STOCK:
        return by_default_of(content, folder, providers, threads)
    if places is None or tuple(providers) != CPU:
        return session_of(content, folder, providers, threads)
    return planned_of(content, folder, placement_in(places) if planned.subject.measured else None, threads=threads)


def load_plan(path: File) -> Planned:
    """A plan that `remat solve` or `save` wrote; refused if its model or costs have changed.

    - `path`: of the .plan.json.

    Example:

        plan = remat.load_plan("train.plan.json")
    """
    return load_planned(given.path_of(path, "a plan's file"))
