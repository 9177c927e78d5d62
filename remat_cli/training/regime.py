"""How a step is told to train, and what differs between two ways of it."""

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
        """As a checkpoint keeps it; not the rate, which a step may set."""
        told = {"accumulate": self.accumulate, "schedule": self.schedule.described()}
        return told if self.optimizer is None else {**told, "optimizer": dict(self.optimizer)}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What was otherwise, in words; only of what both say."""
    for name, value in before.items():
        if name not in now:
            continue
        if isinstance(value, dict) and isinstance(now[name], dict):
            yield from differences({**dict.fromkeys(now[name]), **value}, {**dict.fromkeys(value), **now[name]})
        elif value != now[name]:
            yield f"{name} was {_shown(value)} and is {_shown(now[name])}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "not there" if value is None else json.dumps(value)
