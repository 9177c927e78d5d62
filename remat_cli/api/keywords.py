"""Keywords that several functions take, or that belong to what another keyword names, as type checkers see them.

Invariant: those of methods are the fields of the methods' records, with the same types (held by a test).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class OptimizerSettings(TypedDict, total=False):
    """How the optimizer updates: what `grad`, `step` and `max_batch` take beside its name.

    `groups`: other settings by a pattern of names. `clip`: the norm that all gradients together are held to.
    """

    learning_rate: float | None
    weight_decay: float | None
    betas: tuple[float, float] | None
    eps: float | None
    momentum: float | None
    groups: Mapping[str, Mapping[str, Any]] | None
    clip: float | None


class ScheduleSettings(TypedDict, total=False):
    """What becomes of a learning rate: what `step` takes beside a schedule's name."""

    steps: int | None
    end: float | None
    every: int | None
    factor: float | None
    warmup: int | None
    start: float | None


class MethodOptions(TypedDict, total=False):
    """What single methods of `solve` can be told; `remat solve --method NAME --help` says it of one."""

    relaxation: Literal["improved", "paper"]
    rounding: Literal["deterministic", "randomized"]
    samples: int
    allowance: int
    splits: int
    no_stages: bool
    eliminate: bool
    snapshots: int | None
    segments: int | None
    slots: int | None
    objective: Literal["time", "traffic", "paper"]
    between_groups: bool
    fusion: Literal["ideal", "runtime"]
