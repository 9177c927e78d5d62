"""What `grad` does, on values: a forward model in, its training graph out."""

from __future__ import annotations

from pathlib import Path

import onnx

from remat_cli.errors import Usage
from remat_cli.gradient.optimizers import OPTIMIZERS
from remat_cli.gradient.prepare import load
from remat_cli.gradient.training import Options, training_graph


def differentiate(model: Path | onnx.ModelProto, options: Options) -> onnx.ModelProto:
    """The training graph; a model in memory is left as it is."""
    if options.optimizer not in ("none", *OPTIMIZERS):
        raise Usage(f"there is no optimizer '{options.optimizer}'; there are none, {', '.join(OPTIMIZERS)}")
    if isinstance(model, Path):
        return training_graph(load(model), options)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return training_graph(copy, options)
