"""Prepares a forward model: loads it, binds its dimensions, finds its parameters, and puts it on a tape.

Invariant: the result has static shapes only, at an opset that gradients can be written in, without local functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from remat_cli.errors import BadInput, meant
from remat_cli.gradient.autocast import BFLOAT16_OPSET, FLOAT, Autocast
from remat_cli.gradient.modes import find_lost_modes, train_batch_norms, train_dropouts
from remat_cli.gradient.parameters import Choice, choose_parameters, settle_parameters
from remat_cli.gradient.tape import Tape
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.trace import Tracer
from remat_cli.gradient.upgrade import LEAST_OPSET
from remat_cli.onnx_graph.dims import bind, refuse_unused
from remat_cli.onnx_graph.functions import inline_local
from remat_cli.onnx_graph.names import sort_nodes
from remat_cli.onnx_graph.opsets import opset_of, upgrade
from remat_cli.onnx_graph.stored import array_of
from remat_cli.onnx_graph.walk import captures, leading_to

MODEL = Path("the model")  # as errors call it


@dataclass(slots=True)
class Forward:
    """`inputs` and `parameters` are graph inputs by name; `updated` has each running statistic's new value; `others`
    are outputs wanted besides `output`."""

    tape: Tape
    output: Tensor
    inputs: dict[str, Tensor] = field(default_factory=dict)
    parameters: dict[str, Tensor] = field(default_factory=dict)
    updated: dict[str, Tensor] = field(default_factory=dict)
    others: dict[str, Tensor] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)  # how many ops of the forward pass read each value
    notes: list[str] = field(default_factory=list)  # notes for the user about the parameters


@dataclass(frozen=True, slots=True)
class Binding:
    """The sizes of symbolic dimensions: whole shapes, the batch, single names."""

    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    batch: int | None = None
    dims: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Modes:
    """The user's word about modes. `train`: every Dropout and BatchNormalization trains, whatever the file says;
    `freeze_bn`: BatchNormalization stays in inference mode, its statistics fixed."""

    train: bool = False
    freeze_bn: bool = False


def check_outputs(model: onnx.ModelProto, wanted: Sequence[str]) -> None:
    """Refuse names that are no outputs of the model."""
    known = [value.name for value in model.graph.output]
    if unknown := [name for name in wanted if name not in known]:
        raise BadInput(f"the model has no output '{unknown[0]}'; {meant(unknown[0], known)}")


def prepare(
    model: onnx.ModelProto,
    outputs: Sequence[str | None],
    choice: Choice,
    binding: Binding,
    modes: Modes,
    narrow: int = FLOAT,
) -> Forward:
    """The part of the model that leads to `outputs`, on a tape. The loss is computed from the first of them (None: the
    model's first output).

    `narrow`: the type of products; if it is not float32, parameters and known arrays are float32.
    """
    target = outputs[0] or model.graph.output[0].name
    wanted = [target, *(name for name in outputs[1:] if name)]
    model, nodes, notes = _modernize(model, wanted, choice, modes)
    tape = Tape(max(LEAST_OPSET, opset_of(model), BFLOAT16_OPSET if narrow == onnx.TensorProto.BFLOAT16 else 0))
    trained = choose_parameters(model, nodes, choice)
    autocast = Autocast(tape, narrow) if narrow != FLOAT else None
    forward = Forward(tape, tape.integers(0), notes=notes)
    read = {name for node in nodes for name in (*node.input, *captures(node))} | {*wanted}
    _bind(model, binding, read, trained)
    known = _store_rest(model.graph, tape, trained, autocast)
    known |= _declare_inputs(model.graph, trained, forward, autocast)
    for stored in model.graph.initializer:
        if stored.name in trained:
            kind = autocast.kept(stored.data_type) if autocast else stored.data_type
            forward.parameters[stored.name] = tape.declare(stored.name, kind, stored.dims)
    known |= forward.parameters
    tracer = Tracer(tape, known, {tensor.name for tensor in forward.parameters.values()}, modes.freeze_bn, autocast)
    tracer.sample_variance = model.producer_name == "pytorch"
    if autocast:
        autocast.weak.update(forward.parameters)
    _trace(tracer, nodes, trained, forward, opset_of(model))
    forward.output = tracer.known[target]
    forward.others = {name: tracer.known[name] for name in wanted[1:]}
    forward.updated = tracer.statistics
    forward.reads = Counter(name for node in tape.nodes for name in set(node.input))
    return forward


def _modernize(
    model: onnx.ModelProto, wanted: Sequence[str], choice: Choice, modes: Modes
) -> tuple[onnx.ModelProto, list[onnx.NodeProto], list[str]]:
    """The model at an opset that gradients can be written in, with its ops in their modes; the nodes that lead to the
    wanted outputs; and notes."""
    sort_nodes(model.graph, MODEL)
    nodes = _leading_to(model.graph, wanted)
    notes = [*settle_parameters(model, nodes, choice), *find_lost_modes(nodes, choice)]
    train_batch_norms(model.graph, modes.train and not modes.freeze_bn)
    opset = opset_of(model)
    model = inline_local(upgrade(model), MODEL) if model.functions else upgrade(model)
    nodes = _leading_to(model.graph, wanted)
    return model, nodes, [*notes, *train_dropouts(model, nodes, opset, modes.train)]


def _store_rest(
    graph: onnx.GraphProto, tape: Tape, trained: Collection[str], autocast: Autocast | None
) -> dict[str, Tensor]:
    """Put the stored tensors that are not trained on the tape."""
    if graph.sparse_initializer:
        raise BadInput(f"'{graph.sparse_initializer[0].values.name}' is stored as a sparse tensor; export it as it is")
    known = {}
    for stored in graph.initializer:
        if stored.name not in trained:
            array = array_of(stored)
            known[stored.name] = tape.store(stored.name, autocast.widened(array) if autocast else array)
    return known


def _trace(
    tracer: Tracer, nodes: Sequence[onnx.NodeProto], trained: Collection[str], forward: Forward, opset: int
) -> None:
    for node in nodes:
        if set(node.output).intersection(trained):
            _take_over(tracer, node, forward)
        else:
            tracer.trace(node, opset)
    tracer.finish()


def _leading_to(graph: onnx.GraphProto, targets: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes that the targets are computed from, in order; the first target must be computed by one."""
    nodes = leading_to(graph.node, targets)
    if (target := targets[0]) not in {name for node in nodes for name in node.output}:
        outputs = ", ".join(value.name for value in graph.output)
        raise BadInput(f"the model computes no '{target}'; its outputs are: {outputs}; losses: cross-entropy, mse")
    return nodes


def _take_over(tracer: Tracer, node: onnx.NodeProto, forward: Forward) -> None:
    """Make an input of a parameter that the model computed itself, from a fill or a constant."""
    name = node.output[0]
    kind = tracer.tape.infer(node)[name].tensor_type
    wanted = tracer.autocast.kept(kind.elem_type) if tracer.autocast else kind.elem_type
    made = tracer.tape.declare(name, wanted, [dim.dim_value for dim in kind.shape.dim])
    tracer.known[name] = forward.parameters[name] = made
    tracer.active.add(name)
    if tracer.autocast:
        tracer.autocast.weak.add(name)


def _bind(model: onnx.ModelProto, binding: Binding, read: Collection[str], chosen: Collection[str]) -> None:
    """Give a size to each dimension of the inputs that are read; the others are left out."""
    stored = {initializer.name for initializer in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name in read and value.name not in stored]
    if unknown := set(binding.shapes) - {value.name for value in inputs}:
        raise BadInput(f"--shape {min(unknown)}: the model reads no input of that name")
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    data = [value.type.tensor_type.shape for value in model.graph.input if value.name not in chosen]
    some = any(_is_dynamic(shape) for shape in data)  # then one of fixed size, such as a mask, does not take --batch
    dims = dict(binding.dims)
    for value in model.graph.input:
        shape, wanted = value.type.tensor_type.shape, list(binding.shapes.get(value.name, ()))
        if wanted and not value.type.tensor_type.HasField("shape"):
            shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=size) for size in wanted)
        if wanted and len(wanted) != len(shape.dim):
            raise BadInput(f"--shape {value.name}: the input has {len(shape.dim)} dimensions, not {len(wanted)}")
        if not wanted and binding.batch and value.name not in chosen and (_is_dynamic(shape) or not some):
            wanted = [binding.batch]
        for axis, (dim, size) in enumerate(zip(shape.dim, wanted, strict=False)):
            place = dim.dim_param or f"{value.name}:{axis}"
            if dims.setdefault(place, size) != size:
                raise BadInput(f"dimension {place!r} is {dims[place]} elsewhere, but {size} in input '{value.name}'")
    refuse_unused(model, dims, {*bind(model, dims, MODEL)}, MODEL)


def _is_dynamic(shape: onnx.TensorShapeProto) -> bool:
    """Whether the size of the first dimension is open."""
    return bool(shape.dim) and not shape.dim[0].HasField("dim_value")


def _declare_inputs(
    graph: onnx.GraphProto, chosen: Collection[str], forward: Forward, autocast: Autocast | None
) -> dict[str, Tensor]:
    """Put the inputs on the tape, by their names."""
    declared: dict[str, Tensor] = {}
    for value in graph.input:
        kind = value.type.tensor_type.elem_type
        if autocast and value.name in chosen:
            kind = autocast.kept(kind)
        tensor = forward.tape.declare(value.name, kind, [dim.dim_value for dim in value.type.tensor_type.shape.dim])
        (forward.parameters if value.name in chosen else forward.inputs)[value.name] = tensor
        declared[value.name] = tensor
    return declared
