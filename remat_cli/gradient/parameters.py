"""Chooses the tensors that are trained: by the user's word, by the model's, or by where a weight would be.

Invariant: a chosen tensor is float, is in the model, and leads to the loss. A file that records its parameters,
and remat's own networks, get no notes on such as look odd.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from remat_cli.errors import BadInput
from remat_cli.gradient.exported import ADVICE, check_export, first_of, signature_of
from remat_cli.gradient.tape import FLOATS
from remat_cli.gradient.ties import alike, tie, tie_alike
from remat_cli.onnx_graph.attributes import attribute, said_in
from remat_cli.onnx_graph.stored import array_of
from remat_cli.onnx_graph.walk import nodes_within

PARAMETERS = "remat.parameters"  # metadata key: the names of the model's inputs that are weights, separated by spaces
SETTINGS = {  # inputs that steer an op; a tensor that is read only there is no parameter
    "Pow": (1,),
    "Clip": (1, 2),
    "Resize": (1, 2),
    "Pad": (2,),
    "Dropout": (1,),
    "BatchNormalization": (3, 4),
    "OneHot": (2,),
    "Range": (0, 1, 2),
}
LOST = (
    "PyTorch's tracing exporter keeps no detach(), no_grad or padding_idx: "
    "of a module that has any, export with dynamo=True, optimize=False"
)
NOT_TRAINING = (
    "no Dropout or BatchNormalization of the file trains: PyTorch's tracing exporter exports in eval mode, "
    "unless training=TrainingMode.PRESERVE is given"
)
TRACED = "onnx::"  # the prefix of weights that PyTorch's tracing exporter has computed
MASKED = -1e4  # an initializer with values below this is an attention mask
# names that exporters make for tensors without a name
OWN_NAME = re.compile(r"(val_\d+|onnx::.*|/.*|_?tensor_constant\d*|\d+)")
# PyTorch's own layers have these names for parameters
PLAIN = frozenset(("weight", "bias", "in_proj_weight", "in_proj_bias"))
MANY_READS = 3  # reads of one parameter


@dataclass(frozen=True, slots=True)
class Parameter:
    """What is trained. `reads`: by how many ops of the forward pass. `bytes`: of its gradient, as of itself."""

    name: str
    shape: tuple[int, ...]
    reads: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice. `wrt`: train these alone. `params`: the module's names, some of which may not be in the graph;
    `groups`: those names by parameter, where all names are known, so that any other name is no parameter.

    `ties`: pairs that are one parameter. `as_exported`: train what the file stores, whatever an exporter did.
    """

    wrt: Sequence[str] = ()
    params: Sequence[str] = ()
    ties: Sequence[tuple[str, str]] = ()
    as_exported: bool = False
    groups: Sequence[Sequence[str]] = ()


def settle_parameters(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], choice: Choice) -> list[str]:
    """Make each parameter one initializer, as in the module that was exported; the result is notes on what was done.

    Refuses a model whose exporter folded parameters away, unless the user says what to train.
    """
    tie(model.graph, choice.ties)
    if choice.as_exported:
        return []
    if signature_of(model) is not None:
        return [] if choice.wrt else check_export(model, nodes)
    if model.producer_name != "pytorch":
        return []
    notes = [*tie_alike(model.graph), LOST]
    shown = (one.op_type == "Dropout" or bool(attribute(one, "training_mode")) for one in nodes_within(nodes))
    if not choice.groups and not any(shown):
        notes.append(NOT_TRAINING)
    if not choice.wrt and (choice.groups or not choice.params):
        _refuse_folded(model.graph, nodes)
    return notes


def _refuse_folded(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Refuse weights that the tracing exporter transposed or fused with others; it gives them names of its own."""
    read = {name for node in nodes for index, name in enumerate(node.input) if _is_operand(node, index)}
    folded = [i.name for i in graph.initializer if i.name.startswith(TRACED) and i.name in read and _is_weight(i)]
    if folded:
        raise BadInput(
            f"PyTorch's exporter folded or transposed {len(folded)} weights ({first_of(folded)}), so their gradients "
            f"would not be those of the module's parameters; {ADVICE}"
        )


def _is_weight(tensor: onnx.TensorProto) -> bool:
    """Whether the tensor has two elements or more and is no mask."""
    if tensor.data_type not in FLOATS:
        return False
    array = array_of(tensor)
    return array.size > 1 and bool(array.min() > MASKED)


def choose_parameters(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], choice: Choice) -> set[str]:
    """The trained names: by the user's word, otherwise float initializers, otherwise constant fills, that steer no
    op."""
    graph = model.graph
    floats = {i.name for i in graph.initializer if i.data_type in FLOATS}
    inputs = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    fills = {node.output[0] for node in nodes if node.op_type in ("ConstantOfShape", "Constant")}
    if choice.wrt:
        for name in choice.wrt:
            _check_wanted(name, graph, inputs, floats | fills)
        return set(choice.wrt)
    used = {name for node in nodes_within(nodes) for index, name in enumerate(node.input) if _is_operand(node, index)}
    if choice.params:
        return _find_listed(model, choice, floats | set(inputs)) & used
    named = said_in(model).get(PARAMETERS, "").split()
    fills = {node.output[0] for node in nodes if node.op_type == "ConstantOfShape" and _is_float(node)}
    weights = {name for node in nodes if node.op_type in ("Conv", "Gemm", "MatMul") for name in node.input[1:2]}
    if not fills & weights:  # a light model has fills in place of its weights, to save space
        fills = set()
    return (_stored_parameters(model, floats, choice) | fills | set(named)) & used


def _stored_parameters(model: onnx.ModelProto, floats: set[str], choice: Choice) -> set[str]:
    """Initializers that are parameters: those that PyTorch's exporter records, otherwise all that are float.

    In a file that is trained as it is, only scalars and tensors recorded as something else are left out, because
    transposed or folded weights have no record.
    """
    signature = signature_of(model)
    if signature is None:
        return floats
    if not choice.as_exported:
        return floats & signature.parameters
    scalars = {i.name for i in model.graph.initializer if not i.dims and i.name not in signature.kinds}
    return floats - scalars - (signature.kinds.keys() - signature.parameters)


def _find_listed(model: onnx.ModelProto, choice: Choice, there: set[str]) -> set[str]:
    """The names that the model has; a tied parameter may have another of its names there."""
    names = choice.params
    found = there.intersection(names)
    signature = None if choice.groups else signature_of(model)
    others = signature.parameters - found if signature else set()
    if len(others) <= len(set(names) - found):
        found |= others
    if not found:
        raise BadInput(
            f"none of the {len(names)} names of --params-from is an initializer of the model ({first_of(names)}): they "
            f"are of another module, or its export lost them; {ADVICE}"
        )
    return found


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


def remarks(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]], reads: Mapping[str, int], choice: Choice
) -> Iterator[str]:
    """A line for each kind of oddity. The parameters have these shapes, and so many ops read each."""
    wanted = choice.groups or [(name,) for name in choice.params]
    if missing := [names[0] for names in wanted if not any(name in shapes for name in names)]:
        yield f"not trained, since no op that leads to the loss reads them under that name: {first_of(missing)}"
    if model.producer_name == "remat" or choice.wrt or choice.params:
        return
    if signature_of(model) is not None and not choice.as_exported:
        return
    if single := [name for name, shape in shapes.items() if math.prod(shape) == 1]:
        yield f"of one element, perhaps constants: {first_of(single)}; --wrt or --params-from leaves them out"
    if unnamed := [name for name in shapes if OWN_NAME.fullmatch(name)]:
        yield f"named by an exporter, perhaps constants or folded weights: {first_of(unnamed)}"
    if own := [name for name in shapes if _may_be_buffer(model, name)]:
        yield (
            f"perhaps buffers, which PyTorch's tracing exporter writes as it does parameters: {first_of(own)}; "
            "--params-from leaves them out"
        )
    if often := [f"{name} ({reads[name]} times)" for name in shapes if reads[name] >= MANY_READS]:
        yield f"read often: {first_of(often)}; one weight in the module, or several that an exporter merged?"
    for names in alike(model.graph, set(shapes)):
        yield f"equal at the start: {first_of(names)}; if the module has them as one, --tie {names[0]}={names[1]}"


def _may_be_buffer(model: onnx.ModelProto, name: str) -> bool:
    """Whether the tensor may be a buffer: a traced export does not tell, so any name of the module's own that is no
    layer's weight or bias counts."""
    if model.producer_name != "pytorch" or signature_of(model) is not None or OWN_NAME.fullmatch(name):
        return False
    return name.rpartition(".")[2] not in PLAIN
