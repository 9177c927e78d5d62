"""What came of trying sizes of a training step: which fits, by what plan, and which is proved not to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remat_cli.planning.plans.planned import Planned

Verdict = Literal["fits", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a size. `why`: what the proof covers, or what the size was refused for."""

    size: int
    verdict: Verdict
    plan: Planned | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Largest:
    """`size` fits, by its plan; `next` is the one after it. `below`: the least size that is proved not to fit.

    `baselines`: how far the other methods come, under the same budget and allowance; 0: nowhere, None:
    not known.
    """

    size: int
    plan: Planned
    next: Tried
    below: Tried | None
    baselines: dict[str, int | None]
    budget: int

    @property
    def proved(self) -> bool:
        return self.next.verdict == "infeasible"
