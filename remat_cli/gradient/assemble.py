"""Makes a model of a tape: live nodes only, outputs named by the nodes that make them, every type recorded.

Invariant: no node is dead, every value has a shape, and the nodes stand in the order in which they were emitted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.gradient.optimizers import RATE, Recipe, Updates
from remat_cli.gradient.tape import Tape
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.upgrade import LEAST_OPSET
from remat_cli.model.step_parts import STEP_PARTS, Parts, parts_of
from remat_cli.onnx_graph.walk import leading_to


def assemble(
    tape: Tape, inputs: Sequence[str], outputs: Mapping[str, Tensor], defaults: Mapping[str, np.ndarray]
) -> onnx.ModelProto:
    """A model with these inputs and outputs; `defaults` are inputs too, with values that a caller may leave out."""
    renamed = _names(tape, inputs, outputs, defaults)
    nodes = leading_to(tape.nodes, {tensor.name for tensor in outputs.values()})
    _leave_out_unread(tape, nodes, {tensor.name for tensor in outputs.values()})
    types = {renamed.get(name, name): kind for name, kind in tape.types.items()}
    for node in nodes:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    nodes += _copies(tape, outputs, renamed, types)
    return _model(tape, nodes, types, inputs, list(outputs), defaults)


def _names(
    tape: Tape, inputs: Sequence[str], outputs: Mapping[str, Tensor], defaults: Mapping[str, np.ndarray]
) -> dict[str, str]:
    """New names: each output's first, then those of other values that had an output's name."""
    fixed = {*inputs, *defaults, *tape.constants}
    if taken := fixed.intersection(outputs):
        raise BadInput(f"the model has an input called '{min(taken)}', which the training graph has as an output")
    renamed: dict[str, str] = {}
    for name, tensor in outputs.items():
        if tensor.name not in fixed:
            renamed.setdefault(tensor.name, name)
    for name in outputs:
        if name in tape.types and name not in renamed:
            renamed[name] = tape.fresh(f"{name}/inner")
    return renamed


def _leave_out_unread(tape: Tape, nodes: Sequence[onnx.NodeProto], outputs: set[str]) -> None:
    """Leave out outputs that nobody reads, where the op allows it, because they would stay in memory to the end."""
    read = outputs.union(*(node.input for node in nodes))
    for node in nodes:
        formal = defs.get_schema(node.op_type, tape.opset, node.domain).outputs
        for index, name in enumerate(node.output):
            optional = index < len(formal) and formal[index].option == defs.OpSchema.FormalParameterOption.Optional
            if name and name not in read and optional:
                node.output[index] = ""
        while not node.output[-1]:
            node.output.pop()


def _copies(
    tape: Tape, outputs: Mapping[str, Tensor], renamed: Mapping[str, str], types: dict[str, onnx.TypeProto]
) -> list[onnx.NodeProto]:
    """Identity nodes, only where one value is two outputs, or an output is an input or a constant."""
    copies = []
    for name, tensor in outputs.items():
        source = renamed.get(tensor.name, tensor.name)
        if source != name:
            copies.append(helper.make_node("Identity", [source], [name], name=tape.fresh_node(f"{name}/copy")))
            types[name] = types[source]
    return copies


def _model(
    tape: Tape,
    nodes: Sequence[onnx.NodeProto],
    types: Mapping[str, onnx.TypeProto],
    inputs: Sequence[str],
    outputs: Sequence[str],
    defaults: Mapping[str, np.ndarray],
) -> onnx.ModelProto:
    read = {name for node in nodes for name in node.input}
    inner = {name: None for node in nodes for name in node.output if name}
    for name in outputs:
        inner.pop(name, None)
    constants = {name: array for name, array in tape.constants.items() if name in read} | dict(defaults)
    info = {name: helper.make_value_info(name, kind) for name, kind in types.items()}
    graph = helper.make_graph(
        nodes,
        "training",
        [info[name] for name in dict.fromkeys([*inputs, *defaults])],
        [info[name] for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
        value_info=[info[name] for name in inner],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", tape.opset)], producer_name="remat")
    model.ir_version = min(model.ir_version, 10 if tape.opset <= 22 else 11)
    return model


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
