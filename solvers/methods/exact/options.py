"""What the exact solver can be told."""

from __future__ import annotations

from dataclasses import dataclass

from solvers.options import option


@dataclass(frozen=True, slots=True)
class Known:
    candidates: tuple[tuple[int, ...], ...] = option((), "a known plan, as a candidate to beat")


NOTHING_KNOWN = Known()
