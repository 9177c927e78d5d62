"""From what the user named on the command line to a Subject: a model with its costs, or a bare problem.

Invariant: a cost file is used only for the very model it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from remat_cli.errors import BadInput, Usage
from remat_cli.subject import Subject


def load_subject(model: Path | None, costs: Path | None, dims: Mapping[str, int]) -> Subject:
    """The subject at `model`; without one, the model that the only cost file here was made for."""
    if model is None:
        costs = costs or _only_costs(Path())
        model = model_of(costs)
    if not model.is_file():
        raise BadInput(f"{model}: there is no such file")
    if model.suffix == ".json":
        return _bare(model, costs, dims)
    return _model(model, costs, dims)
