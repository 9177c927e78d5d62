"""What `grad` does, on values: a forward model in, its training graph out."""

from __future__ import annotations

from math import prod

import onnx

from remat_cli.errors import Usage
from remat_cli.gradient.autocast import PRECISIONS
from remat_cli.gradient.parameters import Parameter
from remat_cli.gradient.training import Options, training_graph
from remat_cli.model.step_parts import parts_of


def differentiate(model: onnx.ModelProto, options: Options) -> onnx.ModelProto:
    """The training graph of a model as `load_with_tensors` gives it, which is changed."""
    options.recipe.check()
    if options.accumulate and options.recipe.name != "none":
        raise Usage(
            "a step that adds up gradients updates nothing; leave out the optimizer here, and give it to remat.step"
        )
    if not isinstance(options.precision, str) or options.precision not in PRECISIONS:
        raise Usage(f"there is no precision '{options.precision}'; there are {', '.join(PRECISIONS)}")
    return training_graph(model, options)


def parameters_of(training: onnx.ModelProto) -> list[Parameter]:
    """The parameters of a step that `differentiate` made, in its order."""
    parts = parts_of(training)
    assert parts is not None
    kinds = {value.name: value.type.tensor_type for value in training.graph.input}
    found = []
    for name, reads in parts.parameters.items():
        shape = tuple(dim.dim_value for dim in kinds[name].shape.dim)
        width = onnx.helper.tensor_dtype_to_np_dtype(kinds[name].elem_type).itemsize
        found.append(Parameter(name, shape, reads, prod(shape) * width))
    return found


def notes_of(training: onnx.ModelProto) -> list[str]:
    """What the user should know of the parameters."""
    parts = parts_of(training)
    return list(parts.notes) if parts else []
