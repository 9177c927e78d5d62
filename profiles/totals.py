"""The figures of a cost file about the whole graph: its times, its memory, and whether it runs as predicted.

Invariant: a figure of the wrong type stays in the file, but no code uses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Totals:
    """Nanoseconds and bytes; None for what the file does not say.

    `alone`: the sum of the ops' times alone. `session_bytes`: the device memory that a session takes beside its
    tensors. `whole_graph`: the median of undisturbed runs, or why there was none. `waited`: the share of the time that
    threads waited for a processor. `default_peaks`: the memory of the first run and of later ones under default
    options. `peak`: what the file holds as it is. `unlike`: where the runtime differs from the prediction. Where it
    does not, and yet another peak was seen, the file has functions, which no rewritten model has. `seen`: what depends
    on data. `not_run`: the reason why nothing of this is known. `others`: fields that this version does not know.
    """

    alone: int | None = None
    session: int | None = None
    session_bytes: int | None = None
    launch: int | None = None
    probe: int | None = None
    waited: float | None = None
    whole_graph: int | str | None = None
    difference: str | None = None
    median: int | None = None
    spread: float | None = None
    runs: int | None = None
    peak: int | None = None
    predicted_peak: int | None = None
    unlike: str | None = None
    default_peaks: tuple[int, int] | None = None
    seen: str | None = None
    not_run: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Totals:
        """From what the file says."""
        known: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in said.items():
            read = tuple(value) if name == "default_peaks" and isinstance(value, list) else value
            (known if _is_one(name, read) else others)[name] = read if _is_one(name, read) else value
        return cls(**known, others=others)

    @property
    def by_functions(self) -> tuple[int, int] | None:
        """What the file holds and what is predicted, where only its functions make that differ."""
        if self.unlike is not None or self.peak is None or self.predicted_peak is None:
            return None
        far = abs(self.peak - self.predicted_peak) > NEAR_SHARE * self.predicted_peak
        return (self.peak, self.predicted_peak) if far else None

    def as_mapping(self) -> dict[str, Any]:
        """The fields that are known, in their order, in the form of the file."""
        known = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "others"}
        said = {name: value for name, value in known.items() if value is not None}
        if self.default_peaks is not None:
            said["default_peaks"] = list(self.default_peaks)
        return {**said, **self.others}


NEAR_SHARE = 0.01  # of the peak: closer than that the model is as foretold
NUMBERS = frozenset(
    {"alone", "session", "session_bytes", "launch", "probe", "median", "runs", "peak", "predicted_peak"}
)
SHARES = frozenset({"waited", "spread"})
TEXTS = frozenset({"difference", "unlike", "seen", "not_run"})


def _is_one(name: str, value: object) -> bool:
    """Whether it is a value of the field of that name."""
    if name == "default_peaks":
        return isinstance(value, tuple) and len(value) == 2 and all(type(size) is int and size >= 0 for size in value)
    number = type(value) is int and value >= 0
    if name == "whole_graph":
        return number or isinstance(value, str)
    if name in NUMBERS:
        return number
    if name in SHARES:
        return number or (isinstance(value, float) and 0 <= value < math.inf)
    return name in TEXTS and isinstance(value, str)
