"""Finds what PyTorch's exporter did to a module's parameters, by the exporter's own records.

The exporter notes in metadata which parameters the module has, which of them each op of the module read, and which
initializers are one of them unchanged. Its optimizer folds, merges, unties and drops parameters by value. The forward
results stay the same, but the gradients do not.

Invariant: after `check_export`, each parameter that the loss reads is an initializer of its own, or an error says how
to export the module instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import onnx

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.onnx_graph.walk import names_stored

SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
FX_NODE = "pkg.torch.onnx.fx_node"
STACK = "pkg.torch.onnx.stack_trace"
REGION = 'File "<eval_with_key>'  # where torch.export keeps what ran under no_grad or autocast
FOLDED_FROM = "pkg.onnxscript.optimizer.folded_from"
RNN = "torch.nn.modules.rnn.RNN"
RECURRENT_CALL = r"aten\.(?:lstm|gru)\.input\]\(args = .*\], (?:True|False), (\d+), ([\d.e-]+), (True|False), "
BATCH_NORM = "_native_batch_norm_legit"  # the name in aten; the exporter leaves out ONNX's training_mode
DRAWN = r"(bernoulli|exponential|multinomial|native_dropout|normal|poisson|rand|uniform)[a-z_]*(_\d+)?"  # by aten
ADVICE = (
    "export it with torch.onnx.export(..., dynamo=True, optimize=False), "
    "or train what stands in the file with --as-exported"
)
PROJECTION = r"(.*\.)?weight_hr_l\d+(_reverse)?"  # an LSTM's own; ONNX's LSTM has none
STEP_BY_STEP = (
    "ONNX's LSTM has no projection (proj_size), so have PyTorch write its steps out: "
    "torch.onnx.export(torch.export.export(module, args).run_decompositions(), args, path, dynamo=True, optimize=False)"
)
NAMED_PARAMETERS = 3  # parameters that an error names


@dataclass(frozen=True, slots=True)
class Signature:
    """`targets`: the module's name of each parameter, by its name inside the export. `kinds`: the kind of each
    initializer."""

    targets: dict[str, str]
    kinds: dict[str, str]

    @property
    def parameters(self) -> set[str]:
        """Initializers that are an unchanged parameter."""
        return {name for name, kind in self.kinds.items() if kind == "PARAMETER"}


def signature_of(model: onnx.ModelProto) -> Signature | None:
    """The exporter's records of the module; None where another program wrote the model."""
    said = said_in(model.graph).get(SIGNATURE, "")
    targets = dict(re.findall(r"^(\w+): PARAMETER target='(.+)'$", said, re.MULTILINE))
    kinds = {value.name: kind for value in model.graph.value_info if (kind := said_in(value).get(KIND))}
    if "PARAMETER" not in kinds.values():
        return None
    return Signature(targets, {name: kinds[name] for name in kinds.keys() & names_stored(model.graph)})


def check_export(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Refuse a model in which parameters that the nodes read differ from those of the module, or draws are constants;
    the result is notes on others."""
    signature = signature_of(model)
    if signature is None or not signature.targets:
        return []
    missing = {inner: name for inner, name in signature.targets.items() if name not in signature.parameters}
    # the inner names of what the initializers were computed from that the nodes read
    sources = {name for said in _folded(model.graph, nodes).values() for name in ast.literal_eval(said)}
    asked = {name for node in model.graph.node for name in _arguments(node)}
    lost = {name for inner, name in missing.items() if inner in asked} | (sources & set(signature.targets.values()))
    if _is_optimized(model.graph, sources, asked, signature):
        lost |= set(missing.values())
    if lost:
        projected = sorted(name for name in lost if re.fullmatch(PROJECTION, name))
        named, advice = (projected, STEP_BY_STEP) if projected else (sorted(lost), ADVICE)
        raise BadInput(
            f"PyTorch's exporter folded, merged or left out {len(lost)} of the module's {len(signature.targets)} "
            f"parameters ({first_of(named)}), so their gradients would not be the module's; {advice}"
        )
    if drawn := sorted(name for name in _folded(model.graph, nodes) if re.fullmatch(DRAWN, name)):
        raise BadInput(
            f"PyTorch's exporter folded {len(drawn)} random values ({first_of(drawn)}) to constants, so that each step "
            f"would have the same; {ADVICE}"
        )
    if cut := {name for name in asked if re.fullmatch(r"detach(_\d+)?", name)} - _names_of_values(model.graph):
        raise BadInput(
            f"PyTorch's exporter left out {len(cut)} detach of the module, so gradients would flow through; {ADVICE}"
        )
    notes = []
    if inner := [node.name for node in nodes if REGION in said_in(node).get(STACK, "")]:
        notes.append(
            f"{len(inner)} ops ({first_of(inner)}) stand in a region of no_grad or autocast, and the file does not "
            "tell which: gradients lead through them; what no_grad gives must end with .detach()"
        )
    if not missing:
        return notes
    return [*notes, f"no op reads {first_of(sorted(missing.values()))}: tied to another parameter, or without use"]


def first_of(names: Sequence[str]) -> str:
    """The first few of the names."""
    return ", ".join(names[:NAMED_PARAMETERS]) + (", ..." if len(names) > NAMED_PARAMETERS else "")


def is_batch_norm_trained(node: onnx.NodeProto) -> bool:
    """Whether the module ran it in training mode, by the call: (input, weight, bias, mean, variance, training, ...)."""
    call = said_in(node).get(FX_NODE, "")
    return BATCH_NORM in call and "no_training" not in call and "True" in call.partition("](args")[2].split(", ")


def call_of(node: onnx.NodeProto) -> str:
    """The module's call that the node stems from; "" where the file does not say."""
    return said_in(node).get(FX_NODE, "").partition(" ")[0].removeprefix("%")


def _call(node: onnx.NodeProto) -> tuple[str, list[str]]:
    """The module's call, and what it was given by place, each as the file spells it."""
    call = said_in(node).get(FX_NODE, "")
    return call, call.partition("](args = (")[2].partition(")")[0].split(", ")


def dropout_of(node: onnx.NodeProto) -> float:
    """The share that an attention or a recurrent layer drops, by the call; 0 for a module in eval mode.

    The calls are (query, key, value, mask, share, ...) and (..., [weights], has biases, layers, share, trains, ...).
    """
    call, given = _call(node)
    if recurrent := re.search(RECURRENT_CALL, call):
        layers, share, trains = recurrent.groups()
        return float(share) if int(layers) > 1 and trains == "True" else 0.0
    if "aten.scaled_dot_product_attention." not in call:
        return 0.0
    named = re.search(r"dropout_p: ([\d.e-]+)", call)
    return float(named[1]) if named else float(given[4]) if len(given) > 4 else 0.0


def stacked_rnn(node: onnx.NodeProto) -> str:
    """The name of the nn.RNN of several layers that the node is of; "" of others. No record says what it drops."""
    said = said_in(node)
    classes, scopes = (_listed(said.get(f"pkg.torch.onnx.{key}", "")) for key in ("class_hierarchy", "name_scopes"))
    if RNN not in classes or not any(name.endswith("_weight_ih_l1") for name in _arguments(node)):
        return ""
    return scopes[classes.index(RNN)] if len(scopes) == len(classes) else "nn.RNN"


def _listed(said: str) -> list[str]:
    """The names in a list that the exporter wrote as Python does."""
    return re.findall(r"'([^']*)'", said)


def keeps_statistics(node: onnx.NodeProto) -> bool:
    """Whether it is an InstanceNorm that updates statistics in the module, by the call: (input, weight, bias, mean,
    variance, use_input_stats, ...). ONNX's op has no statistics."""
    call, given = _call(node)
    made = node.op_type == "InstanceNormalization" and "aten.instance_norm." in call
    return made and len(given) > 5 and given[3] != "None" and given[5] == "True"


def is_detached(node: onnx.NodeProto) -> bool:
    """Whether the node is the exporter's form of `tensor.detach()`."""
    return "aten.detach." in said_in(node).get(FX_NODE, "")


def smoothing_of(node: onnx.NodeProto) -> float:
    """The label smoothing of the module's cross-entropy: (x, labels, weight, reduction, ignored, smoothing)."""
    call, given = _call(node)
    return float(given[5]) if "aten.cross_entropy_loss." in call and len(given) > 5 else 0.0


def padding_of(node: onnx.NodeProto | None) -> int | None:
    """The row of an embedding that is never trained: (weight, indices, padding_idx, ...). ONNX's Gather has no such
    row."""
    call = said_in(node).get(FX_NODE, "") if node is not None else ""
    found = re.search(r"aten\.embedding\.default\]\(args = \(%\w+, %\w+, (\d+)[,)]", call)
    return int(found[1]) if found else None


def _is_optimized(graph: onnx.GraphProto, sources: set[str], asked: set[str], signature: Signature) -> bool:
    """Whether ops of the module are missing: folded, fused, or left out because they changed nothing."""
    if any(node.op_type == "Constant" for node in graph.node):  # the exporter's optimizer leaves no Constant node
        return False
    made = _names_of_values(graph) | {call_of(node) for node in graph.node} | set(signature.targets)
    return bool(sources or {name for name in asked - made if not re.match(r"[bc]_", name)})


def _names_of_values(graph: onnx.GraphProto) -> set[str]:
    """Every value's name."""
    made = (name for node in graph.node for name in node.output)
    return {*made, *(value.name for value in graph.input), *names_stored(graph)}


def _folded(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> dict[str, str]:
    """The initializers that the nodes read and the exporter computed: what it says of each."""
    read = {name for node in nodes for name in node.input}
    said = {value.name: said_in(value).get(FOLDED_FROM, "") for value in graph.value_info if value.name in read}
    return {name: sources for name, sources in said.items() if sources}


def _arguments(node: onnx.NodeProto) -> Iterable[str]:
    """The inner names of what the module's op read that the node stems from."""
    return re.findall(r"%(\w+)", said_in(node).get(FX_NODE, "").partition("](")[2])
