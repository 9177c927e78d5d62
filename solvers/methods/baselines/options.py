"""The options of the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solvers.options import option


@dataclass(frozen=True, slots=True)
class Walking:
    relaxation: Literal["improved", "paper"] = option("improved", "whose linear program is relaxed")
    rounding: Literal["deterministic", "randomized"] = option("deterministic", "by thresholds, or at random")
    samples: int = option(50, "how many random roundings")


@dataclass(frozen=True, slots=True)
class Rounding:
    rounding: Literal["deterministic", "randomized"] = option("deterministic", "by thresholds, or at random")
    samples: int = option(50, "how many random roundings")
    allowance: int = option(10, "epsilon: how many per cent of the budget the linear program does without")


@dataclass(frozen=True, slots=True)
class PaperForm:
    splits: int = option(1, "into how many parts each stage is cut (section 4.10)")
    no_stages: bool = option(False, "the unpartitioned program")
    eliminate: bool = option(False, "without FREE_{t,k,k}, as a result that is freed at once was idle")


@dataclass(frozen=True, slots=True)
class Snapshots:
    snapshots: int | None = option(None, "how many, the input among them; by default all are tried")


@dataclass(frozen=True, slots=True)
class SegmentCount:
    segments: int | None = option(None, "how many; by default all are tried")


WALKING, ROUNDING, PAPER_FORM, SNAPSHOTS, SEGMENTS = Walking(), Rounding(), PaperForm(), Snapshots(), SegmentCount()
