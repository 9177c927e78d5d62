"""What the inputs of a training step are: parameters, an optimizer's state, running statistics, data.

`grad` writes this into the step's metadata, where rewriting leaves it.

Invariant: parameters, state and statistics come out as `<name>_new`, where they come out at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import onnx

STEP_PARTS = "remat.step"  # metadata of a training graph
FINITE = "finite"  # the output of a step with float16 that says whether all gradients are numbers


@dataclass(frozen=True, slots=True)
class Parts:
    """Names of inputs; `parameters` with how many ops of the forward pass read each. `notes`: what is to be known."""

    parameters: dict[str, int]
    state: tuple[str, ...]
    statistics: tuple[str, ...]
    data: tuple[str, ...]
    notes: tuple[str, ...] = ()


def parts_of(step: onnx.ModelProto) -> Parts | None:
    """What `grad` says of the step; None for a training graph of other making."""
    said = {entry.key: entry.value for entry in step.metadata_props}.get(STEP_PARTS)
    if said is None:
        return None
    told = json.loads(said)
    return Parts(told["parameters"], *(tuple(told[key]) for key in ("state", "statistics", "data", "notes")))
