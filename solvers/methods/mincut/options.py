"""The options of the minimum cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solvers.options import option


@dataclass(frozen=True, slots=True)
class CutOptions:
    objective: Literal["time", "traffic", "paper"] = option(
        "time", "what to make least; paper: its own cut and no other, as where no budget is given"
    )
    between_groups: bool = option(False, "extend cuts between fusion groups (section 3.7)")
    fusion: Literal["ideal", "runtime"] = option("ideal", "which ops share a kernel, where traffic is counted")


CUTTING = CutOptions()
