"""The settings by which a step trains, and the differences between two such sets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from remat_cli.training.rates import RateFunction, RateSchedule


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
