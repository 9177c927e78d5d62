"""Schedules of the learning rate, from update to update, and with them the settings by which a step trains.

Invariant: the factors are those of torch.optim.lr_scheduler with the same settings; a setting that a schedule does not
have is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import cos, pi
from typing import Any

from remat_cli.arguments import brief, number, whole_number
from remat_cli.errors import Usage, meant

OWN = {  # the settings of each schedule besides its warm-up; those without a default must be given
    "constant": (),
    "linear": ("steps", "end"),
    "cosine": ("steps", "end"),
    "step": ("every", "factor"),
    "exponential": ("factor",),
}
WARMING = ("warmup", "start")


@dataclass(frozen=True, slots=True)
class RateSchedule:
    """`steps`: the update at which the rate is at its `end`, a share of the learning rate. `every`: updates after which
    it is multiplied by `factor`. `warmup`: updates in which it first rises, from the share `start`."""

    name: str = "constant"
    steps: int = 0
    end: float = 0.0
    every: int = 1
    factor: float = 0.1
    warmup: int = 0
    start: float = 0.0

    def at(self, update: int) -> float:
        """The factor of the learning rate after so many updates."""
        if update < self.warmup:
            return self.start + (1 - self.start) * update / self.warmup
        done = update - self.warmup
        match self.name:
            case "linear":
                return 1 + (self.end - 1) * min(done / (self.steps - self.warmup), 1.0)
            case "cosine":
                return self.end + (1 - self.end) * (1 + cos(pi * done / (self.steps - self.warmup))) / 2
            case "step" | "exponential":
                return self.factor ** (done // self.every)
        return 1.0

    def described(self) -> dict[str, Any]:
        """The description of the schedule for a checkpoint."""
        return {name: value for name, value in asdict(self).items() if name in ("name", *OWN[self.name], *WARMING)}


@dataclass(frozen=True, slots=True)
class RateFunction:
    """A schedule of the user's: a function from the number of updates to the factor."""

    factor: Callable[[int], float]

    def at(self, update: int) -> float:
        return number(self.factor(update), f"the schedule's factor at update {update}")

    def described(self) -> dict[str, Any]:
        return {"name": "a function"}


def rate_schedule(given: Any, settings: Mapping[str, Any]) -> RateSchedule | RateFunction:
    """A schedule by its name and settings, or a function; nothing said is a constant one."""
    said = {name: value for name, value in settings.items() if value is not None}
    if callable(given) and not isinstance(given, type) and not hasattr(given, "named_parameters"):
        if said:
            raise Usage(f"{', '.join(said)}: a schedule that is a function says so itself")
        return RateFunction(given)
    name = "constant" if given is None else given
    if not isinstance(name, str):
        raise Usage(f"a schedule is a name or a function from the number of updates to a factor, not {brief(given)}")
    if name not in OWN:
        raise Usage(f"there is no schedule '{name}'; {meant(name, OWN)}")
    if wrong := next((one for one in said if one not in (*OWN[name], *WARMING)), None):
        raise Usage(f"a {name} schedule has no {wrong}; it has {', '.join((*OWN[name], *WARMING))}")
    made = RateSchedule(name, **_defaults(name, said), **{key: _number(key, value) for key, value in said.items()})
    _check(made, said)
    return made


def _defaults(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """A warm-up by itself begins where its first update is not for nothing."""
    found = {}
    if "warmup" in said and "start" not in said:
        found["start"] = 1 / (_number("warmup", said["warmup"]) + 1)
    if name == "exponential" and "factor" not in said:
        raise Usage("an exponential schedule is told its factor: factor=0.99")
    return found


def _check(made: RateSchedule, said: Mapping[str, Any]) -> None:
    if made.every < 1:
        raise Usage("every is at least 1")
    if made.name in ("linear", "cosine") and made.steps <= made.warmup:
        raise Usage(f"a {made.name} schedule is told its steps, more than those of the warm-up: steps=1000")
    if made.name == "step" and "every" not in said:
        raise Usage("a step schedule is told after how many updates: every=1000")


def _number(name: str, value: Any) -> Any:
    """A whole number of updates, or a share."""
    return whole_number(value, name) if name in ("steps", "every", "warmup") else number(value, name)


@dataclass(frozen=True, slots=True)
class Regime:
    """`rate`: the learning rate at first. `optimizer`: what is known of it, described. `accumulate`: how many batches
    make an update."""

    rate: float
    schedule: RateSchedule | RateFunction = field(default_factory=RateSchedule)
    optimizer: Mapping[str, Any] | None = None
    accumulate: int = 1

    def described(self) -> dict[str, Any]:
        """The description for a checkpoint, without the rate, which a step may set."""
        told = {"accumulate": self.accumulate, "schedule": self.schedule.described()}
        return told if self.optimizer is None else {**told, "optimizer": dict(self.optimizer)}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The settings that differ, in words; only settings that both sets have are compared."""
    for name, value in before.items():
        if name not in now:
            continue
        if isinstance(value, dict) and isinstance(now[name], dict):
            yield from differences({**dict.fromkeys(now[name]), **value}, {**dict.fromkeys(value), **now[name]})
        elif value != now[name]:
            yield f"{name} was {_shown(value)} and is {_shown(now[name])}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "not there" if value is None else json.dumps(value)
