"""The results of trying sizes of a training step: which size fits, by what plan, and which is proved not to fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from remat_cli.plans.planned import Planned

Verdict = Literal["fits", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of one size. `why`: what the proof covers, or why the size was refused."""

    size: int
    verdict: Verdict
    plan: Planned | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Largest:
    """`size` fits, by its plan; `next` is the size after it. `below`: the least size that is proved not to fit.

    `baselines`: the largest size for each of the other methods, under the same budget and allowance. 0 means that no
    size fits, None that it is not known.
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
