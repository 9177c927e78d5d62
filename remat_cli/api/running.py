"""What a program does with a plan: `remat.emit`, `verify`, `session` and `load_plan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from remat_cli.actions import emitting, verifying
from remat_cli.actions.verifying import TIMEOUT, Trial, Verified
from remat_cli.api import given
from remat_cli.api.given import File, Plan
from remat_cli.arguments import number, switch, word
from remat_cli.checking.compare import Tolerance
from remat_cli.checking.processes import BegunRun
from remat_cli.errors import Usage
from remat_cli.events import EventQueue
from remat_cli.plans.planned import Planned, load_planned
from remat_cli.runtime.session import LEVELS
from solvers.clock import FOREVER_SECONDS, Clock


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
    time_limit: float | str | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    level: str = "all",
    timing: float | str = 0.0,
    report: Callable[[str], None] | None = None,
) -> Verified:
    """Run both models on the real runtime, each in a process of its own.

    - `plan`: what `solve` gave, or its file's path.
    - `feeds`: inputs by name, or a file of them; by default random and valid, by the `seed`.
    - `provider`: "cpu" or "cuda". `timeout`: of each run; `time_limit`: of all.
    - `rtol`, `atol`: how far results may be off; by default the bits are the same.
    - `level`: of a default session's optimizations.
    - `timing`: seconds for timing both, their runs taking turns; what they took is `report.timed`.
    - `report`: called with which run begins, of how many.

    Raises Mismatch where a promise fails.

    Example:

        assert remat.verify("train.plan.json").ok
    """
    heard, events = given.heard_by(report), EventQueue[BegunRun]()
    limit = Clock(FOREVER_SECONDS if time_limit is None else given.seconds_of(time_limit))
    trial = Trial(
        feeds=given.feeds_of(feeds),
        seed=given.seed_of(seed),
        provider=word(provider, "provider"),
        timeout=given.seconds_of(timeout, "timeout"),
        clock=limit.unless(events.broken),
        events=events,
        near=Tolerance(number(rtol, "rtol"), number(atol, "atol")),
        level=_level(level),
        seconds=given.seconds_of(timing, "timing"),
    )
    with events.read_by(lambda run: heard(str(run))):
        found = verifying.verified(given.plan_of(plan), trial)
    if (error := found.refusal("the plan")) is not None:
        raise error
    return found


def _level(given: str) -> str:
    if word(given, "level") not in LEVELS:
        raise Usage(f"there is no level '{given}' of optimizations; there are {', '.join(LEVELS)}")
    return given


def load_plan(path: File) -> Planned:
    """A plan that `remat solve` or `save` wrote; refused if its model or costs have changed.

    - `path`: of the .plan.json.

    Example:

        plan = remat.load_plan("train.plan.json")
    """
    return load_planned(given.path_of(path, "a plan's file"))
