"""The initial state of a training step: the forward model's own values, and zeros for an optimizer's state; and
the step without its nodes, which is all that a state is bound to.

Invariant: every input of the step that is not data has a value of its type and shape, in memory of its own. The frame
of a frame is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx

from remat_cli.errors import BadInput
from remat_cli.gradient.classes import count_classes, named_class_axis
from remat_cli.gradient.losses import IGNORED
from remat_cli.gradient.optimizers import RATE
from remat_cli.model.step_parts import Parts, parts_of
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.onnx_graph.stored import array_of

CLASSES = "remat.classes"  # metadata key: how many classes labels choose among
State: TypeAlias = dict[str, np.ndarray]


def frame_of(step: onnx.ModelProto) -> onnx.ModelProto:
    """Its inputs, outputs, default learning rate and metadata, with the number of its classes among these."""
    frame = onnx.ModelProto(ir_version=step.ir_version)
    frame.opset_import.extend(step.opset_import)
    frame.metadata_props.extend(step.metadata_props)
    frame.graph.name = step.graph.name
    frame.graph.input.extend(step.graph.input)
    frame.graph.output.extend(step.graph.output)
    frame.graph.initializer.extend(tensor for tensor in step.graph.initializer if tensor.name == RATE)
    if named_class_axis(step) is not None and classes_of(step) is None and (count := count_classes(step)):
        frame.metadata_props.add(key=CLASSES, value=str(count))
    return frame


def classes_of(frame: onnx.ModelProto) -> int | None:
    """How many classes labels choose among, where that is known."""
    said = said_in(frame).get(CLASSES, "")
    return int(said) if said.isdigit() else None


def parts_told(step: onnx.ModelProto) -> Parts:
    """Which inputs of the step are what."""
    parts = parts_of(step)
    if parts is None:
        raise BadInput("the model does not say which of its inputs are parameters; make it with `remat grad`")
    return parts


def initial_state(values: Mapping[str, Any], step: onnx.ModelProto) -> State:
    """Arrays for the step's parameters, state, statistics and sums. `values`: by name, arrays or PyTorch's tensors."""
    parts = parts_told(step)
    kinds = {value.name: value.type.tensor_type for value in step.graph.input}
    found: State = {}
    for name in (*parts.parameters, *parts.statistics):
        if name not in values:
            raise BadInput(f"there is no value for '{name}'; give the forward model that the step was made from")
        found[name] = fitting(name, values[name], kinds[name])
    missing = [name for name in parts.state if name not in values]
    if missing and len(missing) < len(parts.state):
        raise BadInput(f"there are values for some of the optimizer's state, but not for {describe_names(missing[:3])}")
    for name in parts.state:
        given = values.get(name)
        found[name] = zeros(kinds[name]) if given is None else fitting(name, given, kinds[name])
    return found | {name: zeros(kinds[name]) for name in parts.sums}


def default_rate(step: onnx.ModelProto) -> float:
    """The learning rate that the step takes by itself; 0 for one that updates nothing."""
    return next((float(array_of(tensor)) for tensor in step.graph.initializer if tensor.name == RATE), 0.0)


def values_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Every stored value of a forward model by name; names that an Identity or a fill stands for among them."""
    found = {tensor.name: array_of(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
        elif node.op_type == "ConstantOfShape" and node.input[0] in found:
            fill = array_of(node.attribute[0].t) if node.attribute else np.zeros(1, np.float32)
            found[node.output[0]] = np.full(found[node.input[0]], fill.reshape(-1)[0])
    return found


def fitting(name: str, value: Any, kind: onnx.TypeProto.Tensor, in_batch: bool = False) -> np.ndarray:
    """A copy of the value as an input of this type takes it; whole numbers and floats change width alone.

    `in_batch`: the value is data, of which the first axis is the batch.
    """
    given = array(value)
    wanted = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    shape = [dim.dim_value for dim in kind.shape.dim]
    if list(given.shape) != shape:
        smaller = in_batch and shape and list(given.shape[1:]) == shape[1:] and 0 < given.shape[0] < shape[0]
        advice = "; a plan is for one size of batch: leave out a smaller last one (drop_last=True)" if smaller else ""
        raise BadInput(f"'{name}' is {list(given.shape)}, but the step takes {shape}{advice}")
    if given.dtype != wanted and _family(given.dtype) != _family(wanted):
        raise BadInput(f"'{name}' is {given.dtype}, but the step takes {wanted}")
    return np.array(given, wanted, order="C")


def check_labels(labels: np.ndarray, classes: int | None) -> None:
    """Refuse labels that are no classes; the runtime would count those below zero from the last class.

    `classes`: how many there are, where that is known.
    """
    wrong = labels[((labels < 0) | (labels >= (classes or np.inf))) & (labels != IGNORED)]
    if wrong.size:
        there = f"there are {classes} classes, counted" if classes else "classes are counted"
        raise BadInput(f"labels hold {wrong[0]}; {there} from 0, and {IGNORED} leaves a place out")


def array(value: Any) -> np.ndarray:
    """A numpy array of anything array-like; a tensor of PyTorch is brought to the CPU, and bfloat16 to float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if "bfloat16" in str(value.dtype) else value
        return np.asarray(value.numpy())
    try:
        return np.asarray(value)
    except ValueError as error:
        raise BadInput(f"{type(value).__name__} is no array: {error}") from error


def _family(dtype: Any) -> str:
    return "whole" if np.dtype(dtype).kind in "iu" else "bool" if np.dtype(dtype).kind == "b" else "float"


def zeros(kind: onnx.TypeProto.Tensor) -> np.ndarray:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return np.zeros([dim.dim_value for dim in kind.shape.dim], dtype)


def describe_names(names: Sequence[str]) -> str:
    """Names in an error."""
    return ", ".join(f"'{name}'" for name in names)
