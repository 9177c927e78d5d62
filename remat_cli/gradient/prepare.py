"""A forward model made ready: loaded, its dimensions bound, its parameters known, laid on a tape.

Invariant: what comes out has static shapes only, at an opset that gradients can be written in, without local functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import inliner

from remat_cli.errors import BadInput
from remat_cli.gradient.tape import FLOATS, Tape
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.trace import Tracer
from remat_cli.gradient.upgrade import LEAST, opset_of, upgrade
from remat_cli.model.limits import FUNCTION_NODES, array_of, below_zero, written_out

PARAMETERS = "remat.parameters"  # metadata: which of the model's inputs are weights, separated by spaces
SETTINGS = {  # inputs that say how an op works; what only stands there is no parameter
    "Pow": (1,),
    "Clip": (1, 2),
    "Resize": (1, 2),
    "Pad": (2,),
    "Dropout": (1,),
    "BatchNormalization": (3, 4),
    "OneHot": (2,),
    "Range": (0, 1, 2),
}
EXPORTED_AS = "pkg.torch.export.graph_signature.InputSpec.kind"  # metadata of PyTorch's exporter: PARAMETER, BUFFER ...


@dataclass(slots=True)
class Forward:
    """`inputs`, `parameters` and `statistics` are graph inputs by name; `updated` gives each statistic's new value."""

    tape: Tape
    output: Tensor
    inputs: dict[str, Tensor] = field(default_factory=dict)
    parameters: dict[str, Tensor] = field(default_factory=dict)
    updated: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binding:
    """How symbolic dimensions get their sizes: whole shapes, the batch, single names."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    batch: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)


def load(path: Path) -> onnx.ModelProto:
    if path.exists() and not path.is_file():
        raise BadInput(f"cannot read {path}: it is not a regular file")
    try:
        model = onnx.load(path, format="protobuf")
    except OSError as error:
        raise BadInput(f"cannot read {error.filename or path}: {error.strerror or error}") from error
    except DecodeError as error:
        raise BadInput(f"{path} is not an ONNX model, or it is truncated; export it again") from error
    except onnx.checker.ValidationError as error:
        raise BadInput(f"cannot read the weights of {path}: {str(error).splitlines()[0]}") from error
    if not model.graph.node:
        raise BadInput(f"{path} holds no graph")
    if below_zero(model.graph):
        raise BadInput(f"{path} is damaged: it declares a dimension below zero")
    if written_out(model) > FUNCTION_NODES:
        raise BadInput(f"{path}: with its functions written out it has more than {FUNCTION_NODES} nodes, or no end")
    return model


def prepare(
    model: onnx.ModelProto, output: str | None, wrt: Sequence[str], binding: Binding, freeze_bn: bool
) -> Forward:
    """The part of the model that leads to `output` (by default its first) on a tape."""
    model = inliner.inline_local_functions(upgrade(model)) if model.functions else upgrade(model)
    graph = model.graph
    target = output or graph.output[0].name
    nodes = _leading_to(graph, target)
    tape = Tape(max(LEAST, opset_of(model)))
    chosen = _parameters(model, nodes, wrt)
    known = {i.name: tape.store(i.name, array_of(i)) for i in graph.initializer if i.name not in chosen}
    forward = Forward(tape, tape.integers(0))
    read = {name for node in nodes for name in node.input} | {target}
    _declare_inputs(graph, binding, read, known, chosen, forward)
    for initializer in graph.initializer:
        if initializer.name in chosen:
            forward.parameters[initializer.name] = tape.declare(
                initializer.name, initializer.data_type, initializer.dims
            )
    known |= forward.parameters
    tracer = Tracer(tape, known, {tensor.name for tensor in forward.parameters.values()}, freeze_bn)
    for node in nodes:
        if set(node.output) & chosen:
            _take_over(tracer, node, forward)
        else:
            tracer.trace(node, opset_of(model))
    forward.output = tracer.known[target]
    forward.updated = tracer.statistics
    return forward


def _leading_to(graph: onnx.GraphProto, target: str) -> list[onnx.NodeProto]:
    """The nodes that the target is computed from, in order."""
    needed, nodes = {target}, []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            nodes.append(node)
            needed.update(node.input)
            needed.update(_captured(node))
    if target not in {name for node in nodes for name in node.output}:
        outputs = ", ".join(value.name for value in graph.output)
        raise BadInput(f"the model computes no '{target}'; its outputs are: {outputs}; losses: cross-entropy, mse")
    return nodes[::-1]


def _captured(node: onnx.NodeProto) -> Iterable[str]:
    for attribute in node.attribute:
        for inner in (attribute.g, *attribute.graphs):
            for part in inner.node:
                yield from part.input
                yield from _captured(part)


def _parameters(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], wrt: Sequence[str]) -> set[str]:
    """Names of what is trained: as asked; else float initializers, else constant fills, that are no op's settings."""
    graph = model.graph
    floats = {i.name for i in graph.initializer if i.data_type in FLOATS}
    inputs = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    fills = {node.output[0] for node in nodes if node.op_type in ("ConstantOfShape", "Constant")}
    if wrt:
        for name in wrt:
            _check_wanted(name, graph, inputs, floats | fills)
        return set(wrt)
    used = {name for node in nodes for index, name in enumerate(node.input) if _is_operand(node, index)}
    named = {entry.key: entry.value for entry in model.metadata_props}.get(PARAMETERS, "").split()
    fills = {node.output[0] for node in nodes if node.op_type == "ConstantOfShape" and _is_float(node)}
    weights = {name for node in nodes if node.op_type in ("Conv", "Gemm", "MatMul") for name in node.input[1:2]}
    if not fills & weights:  # else the model is a light one, whose weights were replaced by fills to save space
        fills = set()
    return (floats - _lifted(graph) | fills | set(named)) & used


def _lifted(graph: onnx.GraphProto) -> set[str]:
    """Initializers that PyTorch's exporter made of a model's numbers and buffers, where it says what are parameters.

    Weights that it transposed or folded are not marked either, so of what is unmarked only scalars are left out.
    """
    kinds = {
        value.name: entry.value
        for value in graph.value_info
        for entry in value.metadata_props
        if entry.key == EXPORTED_AS
    }
    if "PARAMETER" not in kinds.values():
        return set()
    scalars = {i.name for i in graph.initializer if not i.dims and i.name not in kinds}
    return scalars | {name for name, kind in kinds.items() if kind != "PARAMETER"}


def _check_wanted(name: str, graph: onnx.GraphProto, inputs: Mapping[str, int], known: set[str]) -> None:
    kinds = {i.name: i.data_type for i in graph.initializer} | dict(inputs)
    if kinds.get(name, onnx.TensorProto.FLOAT) not in FLOATS:
        kind = onnx.TensorProto.DataType.Name(kinds[name])
        raise BadInput(f"'{name}' is {kind}: only float tensors have gradients; leave it out of --wrt")
    if name not in inputs and name not in known:
        raise BadInput(f"--wrt {name}: the model has no initializer or input of that name that leads to the loss")


def _is_operand(node: onnx.NodeProto, index: int) -> bool:
    return index not in SETTINGS.get(node.op_type, ())


def _is_float(node: onnx.NodeProto) -> bool:
    return not node.attribute or node.attribute[0].t.data_type in FLOATS


def _take_over(tracer: Tracer, node: onnx.NodeProto, forward: Forward) -> None:
    """A parameter that the model made itself, from a fill or a constant: from now on an input."""
    name = node.output[0]
    kind = tracer.tape.infer(node)[name].tensor_type
    made = tracer.tape.declare(name, kind.elem_type, [dim.dim_value for dim in kind.shape.dim])
    tracer.known[name] = forward.parameters[name] = made
    tracer.active.add(name)


def _declare_inputs(
    graph: onnx.GraphProto,
    binding: Binding,
    read: set[str],
    known: dict[str, Tensor],
    chosen: set[str],
    forward: Forward,
) -> None:
    stored = {initializer.name for initializer in graph.initializer}
    dims = dict(binding.dims)
    unknown = set(binding.shapes) - {value.name for value in graph.input}
    if unknown:
        raise BadInput(f"--shape {min(unknown)}: the model has no input of that name")
    symbolic = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    unknown = set(dims) - symbolic
    if unknown:
        there = ", ".join(sorted(symbolic)) or "none"
        raise BadInput(f"--dim {min(unknown)}: the inputs have no dimension of that name; they have {there}")
    for value in graph.input:
        if value.name in stored or value.name not in read:
            continue
        if not value.type.HasField("tensor_type"):
            raise BadInput(f"input '{value.name}' is not a tensor")
        shape = _bound(value, binding, dims, value.name in chosen)
        tensor = forward.tape.declare(value.name, value.type.tensor_type.elem_type, shape)
        (forward.parameters if value.name in chosen else forward.inputs)[value.name] = tensor
        known[value.name] = tensor


def _bound(value: onnx.ValueInfoProto, binding: Binding, dims: dict[str, int], is_parameter: bool) -> list[int]:
    """An input's sizes, all of them known."""
    wanted = binding.shapes.get(value.name)
    given = value.type.tensor_type.shape.dim
    if wanted is not None and value.type.tensor_type.HasField("shape") and len(wanted) != len(given):
        raise BadInput(f"--shape {value.name}: the input has {len(given)} dimensions, not {len(wanted)}")
    if not value.type.tensor_type.HasField("shape"):
        if wanted is None:
            raise BadInput(f"input '{value.name}' has no shape; give it with --shape {value.name}=...")
        return list(wanted)
    shape = []
    for axis, dim in enumerate(given):
        size = wanted[axis] if wanted is not None else None
        if size is None and axis == 0 and not is_parameter:
            size = binding.batch
        shape.append(_size(value.name, axis, dim, size, dims))
    return shape


def _size(name: str, axis: int, dim: onnx.TensorShapeProto.Dimension, size: int | None, dims: dict[str, int]) -> int:
    if dim.HasField("dim_value"):
        if size is not None and size != dim.dim_value:
            raise BadInput(
                f"input '{name}' has the fixed size {dim.dim_value} in dimension {axis}, not {size}; "
                "export the model with that dimension dynamic"
            )
        return int(dim.dim_value)
    if size is None:
        size = dims.get(dim.dim_param) if dim.dim_param else None
    if size is None:
        known = dim.dim_param or "unnamed"
        raise BadInput(
            f"dimension {axis} ({known}) of input '{name}' is not static; "
            f"bind it with {'--batch N or ' if axis == 0 else ''}--shape {name}=..."
        )
    if dim.dim_param and dims.setdefault(dim.dim_param, size) != size:
        raise BadInput(f"dimension '{dim.dim_param}' is {dims[dim.dim_param]} elsewhere, but {size} in input '{name}'")
    return size
