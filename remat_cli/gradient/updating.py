"""An optimizer's update as a model of its own: for gradients that were summed over several batches.

Invariant: inputs and outputs are named as in a step that updates within.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import onnx

from remat_cli.gradient.assemble import assemble
from remat_cli.gradient.optimizers import RATE, Recipe, Updates
from remat_cli.gradient.tape import Tape
from remat_cli.gradient.upgrade import LEAST_OPSET
from remat_cli.model.step_parts import STEP_PARTS, Parts, parts_of


def update_model(step: onnx.ModelProto, recipe: Recipe) -> onnx.ModelProto:
    """From the parameters of the step, their gradients and the optimizer's state to the new ones."""
    parts = parts_of(step)
    assert parts is not None
    recipe.check_names(parts.parameters)
    kinds = {value.name: value.type.tensor_type for value in step.graph.input}
    tape, gradients = Tape(LEAST_OPSET), []
    updates = Updates(tape, recipe)
    for name in parts.parameters:
        kind, shape = kinds[name].elem_type, [dim.dim_value for dim in kinds[name].shape.dim]
        parameter, gradient = tape.declare(name, kind, shape), tape.declare(f"{name}_grad", kind, shape)
        gradients.append(gradient.name)
        updates.take(parameter, gradient)
    updates.finish()
    update = updates.made
    outputs = {f"{name}_new": update.outputs[name] for name in [*parts.parameters, *update.inputs]}
    names = [*parts.parameters, *gradients, *update.inputs]
    model = assemble(tape, names, outputs, {RATE: np.array(recipe.hyper.rate, np.float32)})
    told = Parts(parts.parameters, tuple(update.inputs), (), tuple(gradients))
    onnx.helper.set_model_props(model, {STEP_PARTS: json.dumps(asdict(told))})
    return model
