"""The roles of a training step's inputs: parameters, an optimizer's state, running statistics, data.

`grad` writes them into the step's metadata, where rewriting leaves them.

Invariant: parameters, state and statistics come out as `<name>_new`, where they come out at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import onnx

from remat_cli.onnx_graph.attributes import said_in

STEP_PARTS = "remat.step"  # metadata of a training graph
OPTIMIZER = "remat.optimizer"  # metadata of a training graph that updates its parameters: how
FINITE = "finite"  # the output of a step with float16 that says whether all gradients are numbers


@dataclass(frozen=True, slots=True)
class Parts:
    """Names of inputs; `parameters` with how many ops of the forward pass read each. `notes`: what is to be known.

    `sums`: what gradients are added to, of a step that accumulates them; `sum_of` is the name of a parameter's.
    """

    parameters: dict[str, int]
    state: tuple[str, ...]
    statistics: tuple[str, ...]
    data: tuple[str, ...]
    notes: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()


def sum_of(parameter: str) -> str:
    return f"{parameter}_grad_sum"


def parts_of(step: onnx.ModelProto) -> Parts | None:
    """The parts that `grad` recorded; None for a training graph from elsewhere."""
    said = said_in(step).get(STEP_PARTS)
    if said is None:
        return None
    told = json.loads(said)
    lists = (tuple(told.get(key, ())) for key in ("state", "statistics", "data", "notes", "sums"))
    return Parts(told["parameters"], *lists)


def optimizer_of(step: onnx.ModelProto) -> dict[str, Any] | None:
    """How the step updates its parameters; None where it does not, or where the file does not say."""
    said = said_in(step).get(OPTIMIZER)
    return None if said is None else dict(json.loads(said))
