"""What a program gives to the API, as the actions take it.

Invariant: what cannot be meant is a Usage that says what can; nothing else is raised here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import onnx

from profiles.costs import Costs
from remat_cli.actions.pieces_asked import PiecesAsked, pieces_named
from remat_cli.actions.questions import kind_named
from remat_cli.api.plain import CPU as CPU
from remat_cli.api.plain import File as File
from remat_cli.api.plain import items_of as items_of
from remat_cli.api.plain import path_of as path_of
from remat_cli.api.plain import warn as warn
from remat_cli.arguments import as_float, brief, switch, whole_number
from remat_cli.errors import Usage, meant
from remat_cli.model.in_place import InPlace
from remat_cli.model.quantities import Budget, parse_budget, parse_bytes, parse_count, parse_seconds, parse_share
from remat_cli.model.sessions import Session
from remat_cli.plans.planned import Planned, load_planned
from remat_cli.results.memory import Memory, user_memory
from remat_cli.usual import SOLVE_TIME
from solvers.clock import Clock, limited

Model: TypeAlias = File | onnx.ModelProto
Plan: TypeAlias = File | Planned
Read = TypeVar("Read")
Listener = TypeVar("Listener", bound=Callable[..., None])
ELSEWHERE = {  # what other programs call keywords of ours
    "lr": "learning_rate",
    "wd": "weight_decay",
    "max_norm": "clip",
    "max_grad_norm": "clip",
    "gradient_accumulation_steps": "accumulate",
    "scheduler": "schedule",
    "lr_scheduler": "schedule",
    "batch_size": "batch",
    "dtype": "precision",
    "memory": "budget",
    "limit": "budget",
    "timeout": "time_limit",
}
EXPORT = "torch.onnx.export(module, (example,), 'm.onnx', dynamo=True, optimize=False)"


def kind_of(runtime: str, session: str | None) -> Session:
    """The kind of session of a runtime; `session` is the name that it had before."""
    kind = kind_named(runtime, session)
    if session is not None:
        warn((f"session={session!r} is called runtime={kind.runtime!r} now",), depth=4)
    return kind


def model_of(given: Model) -> Path | onnx.ModelProto:
    if isinstance(given, onnx.ModelProto):
        return given
    if isinstance(given, str | os.PathLike):
        if os.fspath(given).endswith(".plan.json"):
            raise Usage(f"{os.fspath(given)} is a plan; give the model that it is for")
        return path_of(given, "a model")
    if isinstance(given, Planned):
        raise Usage("this is a plan; give the model that it is for")
    if hasattr(given, "named_parameters"):
        raise Usage(f"this is a PyTorch module, not an ONNX model: write one with {EXPORT} and give 'm.onnx'")
    raise Usage(f"a model is a path or an onnx.ModelProto, not {type(given).__name__}")


def plan_of(given: Plan) -> Planned:
    if isinstance(given, Planned | str | os.PathLike):
        if isinstance(given, Planned):
            return given
        if os.fspath(given).endswith(".onnx"):
            raise Usage(f"{os.fspath(given)} is a model; give a plan for it, as solve makes it")
        return load_planned(path_of(given, "a plan"))
    if isinstance(given, onnx.ModelProto):
        raise Usage("this is a model; give a plan for it, as solve makes it")
    raise Usage(f"a plan is what solve gives, or its file's path, not {type(given).__name__}")


def costs_of(given: File | Costs | None) -> Path | Costs | None:
    if not isinstance(given, Costs | str | os.PathLike | None):
        raise Usage(f"costs are what profile gives, or a file of them, not {type(given).__name__}")
    return given if isinstance(given, Costs | None) else path_of(given, "costs")


def feeds_of(given: File | Mapping[str, Any] | None) -> Path | Mapping[str, Any] | None:
    if not isinstance(given, str | os.PathLike | Mapping | None):
        raise Usage(f"feeds are arrays by name, or a file of them, not {type(given).__name__}")
    return path_of(given, "feeds") if isinstance(given, str | os.PathLike) else given


def budget_of(given: int | str | None) -> Budget | None:
    return None if given is None else some_budget(given)


def some_budget(given: int | str) -> Budget:
    """Bytes, or a budget as the command takes it."""
    if isinstance(given, float) and 0 < given <= 1:
        raise Usage(f"a budget is bytes or words, not {given}; did you mean '{100 * given:.10g}%'?")
    return read(given, parse_budget, "budget")


def bytes_of(given: int | str, what: str) -> int:
    return read(given, parse_bytes, what)


def pieces_of(pieces: str, largest_value: int | str | None) -> PiecesAsked:
    """Which ops are to be cut."""
    if not isinstance(pieces, str | None):
        raise Usage(f"pieces are auto, exact, off or as in 'logits=16', not {type(pieces).__name__}")
    return pieces_named(pieces, None if largest_value is None else bytes_of(largest_value, "largest_value"))


def seconds_of(given: float | str, what: str = "time_limit") -> float:
    """A time in seconds, or as the command takes it: "5s", "2m"."""
    return read(given, parse_seconds, what)


def clock_of(time_limit: float | str | None, work_limit: int | str | None, time: str = SOLVE_TIME) -> Clock:
    """The clock of these limits; `time` where neither is given."""
    if time_limit is None and work_limit is None:
        time_limit = time
    seconds = None if time_limit is None else seconds_of(time_limit)
    return limited(seconds, None if work_limit is None else count_of(work_limit, "work_limit"))


def share_of(given: float | str, what: str) -> float:
    """A share, or as the command takes it: "0.1%"."""
    return read(given, parse_share, what)


def count_of(given: int | str, what: str) -> int:
    """A count, or as the command takes it: "5M"."""
    return read(given, parse_count, what)


def read(given: Any, parse: Callable[[str], Read], what: str) -> Read:
    """What the command would read of these words; a number is what it would be in words."""
    try:
        return parse(given if isinstance(given, str) else _written(given, what))
    except ValueError as error:
        raise Usage(f"{what}: {error}") from error


def _written(given: Any, what: str) -> str:
    """The number with all its digits, and no exponent."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if (found := as_float(given)) is None:
        raise Usage(f"{what} is a number or words, not {brief(given)}")
    return str(int(found)) if found.is_integer() else f"{found:.20f}"


def seed_of(given: Any) -> int:
    if (found := whole_number(given, "seed")) >= 2**31:
        raise Usage(f"seed is at most {2**31 - 1}, not {found}")
    return found


def names_of(given: Iterable[str] | str, what: str) -> tuple[str, ...]:
    """Names, of which one may stand alone."""
    names = (given,) if isinstance(given, str) else items_of(given, what)
    if wrong := [type(name).__name__ for name in names if not isinstance(name, str)]:
        raise Usage(f"{what} are names, not {wrong[0]}")
    return tuple(names)


def plans_of(given: Sequence[Plan] | Plan) -> tuple[Planned, ...]:
    """Plans, of which one may stand alone."""
    alone = isinstance(given, Planned | str | os.PathLike)
    return tuple(plan_of(plan) for plan in ((given,) if alone else items_of(given, "known")))


def sizes_of(given: Mapping[str, int] | None, what: str = "dims") -> dict[str, int]:
    """Sizes by the names of dimensions."""
    if given is not None and not isinstance(given, Mapping):
        raise Usage(f"{what} are sizes by name, such as {{'batch': 32}}, not {brief(given)}")
    return {name: whole_number(size, f"{what}[{name!r}]", 1) for name, size in (given or {}).items()}


def check_keywords(given: Iterable[str], function: Callable[..., Any], *settings: type) -> None:
    """Refuse a keyword that neither the function nor the settings that it takes have, with the one that is nearest."""
    own = [one.name for one in signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY]
    every = [*own, *(name for kind in settings for name in kind.__annotations__)]
    for name in given:
        if name not in every:
            usual = ELSEWHERE.get(name)
            near = f"did you mean {usual}?" if usual in every else meant(name, every)
            raise Usage(f"{function.__name__} has no keyword '{name}'; {near}")


def memory_of(cache: bool, seconds: float) -> Memory | None:
    """Where answers are kept, if they are."""
    return user_memory(seconds) if switch(cache, "cache") else None


def heard_by(report: Listener | None) -> Listener | Callable[[object], None]:
    """Who hears of what is found on the way."""
    if report is not None and not callable(report):
        raise Usage(f"report is a function of one argument, not {type(report).__name__}")
    return report or (lambda _: None)


def pairs_of(in_place: Mapping[str, str] | bool | None) -> InPlace:
    """Inputs by the outputs that are written over them; True where they are to be found."""
    if in_place is None or isinstance(in_place, bool):
        return {} if in_place is False else in_place
    if not isinstance(in_place, Mapping):
        raise Usage(f"in_place is True, False, or {{'weight': 'weight_new'}}, not {brief(in_place)}")
    return {new: old for old, new in in_place.items()}
