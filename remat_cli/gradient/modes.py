"""Restores the mode of ops: exporters write some ops that the module trained in their inference form.

Invariant: afterwards an op trains if the module trained it, by the exporter's records or by the user's word. A note
names each op that drops nothing because neither says that it should.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

from remat_cli.errors import BadInput
from remat_cli.gradient.exported import (
    ADVICE,
    call_of,
    dropout_of,
    first_of,
    is_batch_norm_trained,
    keeps_statistics,
    stacked_rnn,
)
from remat_cli.gradient.parameters import Choice
from remat_cli.onnx_graph.attributes import attribute, set_attribute
from remat_cli.onnx_graph.stored import array_of, constant_tensor
from remat_cli.onnx_graph.walk import nodes_within

TRAINS = "remat/training_mode"  # the input that makes a Dropout drop
STATED_OPSET = 12  # the opset from which PyTorch's exporters write no Dropout for a module in eval mode


def train_batch_norms(graph: onnx.GraphProto, every_one: bool) -> None:
    """Put each BatchNormalization that the module trained back into training mode; `every_one`: all of them."""
    for node in graph.node:
        if node.op_type == "BatchNormalization" and (every_one or is_batch_norm_trained(node)):
            set_attribute(node, "training_mode", 1)


def find_lost_modes(nodes: Sequence[onnx.NodeProto], choice: Choice) -> list[str]:
    """Notes on what the exporter left out of the file. Refuses a model that lost the dropout of an attention or of a
    recurrent layer."""
    notes = []
    dropping = {call_of(node): dropout_of(node) for node in nodes if dropout_of(node)}
    there = {call_of(node) for node in nodes if node.op_type == "Dropout"}
    if lost := [name for name in dropping if name not in there]:
        what = (
            f"PyTorch's exporter left out the dropout of {len(lost)} attentions or recurrent layers "
            f"({first_of([f'{name}: p={dropping[name]:g}' for name in lost])})"
        )
        if not choice.as_exported:
            raise BadInput(f"{what}, so nothing would be dropped there; {ADVICE}")
        notes.append(f"{what}: nothing is dropped there")
    stacked = sorted({name for node in nodes if (name := stacked_rnn(node))})
    if stacked and not choice.groups:  # of a module that is given it is known
        notes.append(
            f"PyTorch's exporter leaves out the dropout between the layers of nn.RNN ({first_of(stacked)}): if the "
            "module has one, nothing is dropped there; make one nn.RNN for each layer, with nn.Dropout between"
        )
    if kept := [node.name for node in nodes if keeps_statistics(node)]:
        notes.append(
            f"PyTorch's exporter leaves out the running statistics of InstanceNorm ({first_of(kept)}): "
            "the step does not update them"
        )
    if latest := [node.name for node in nodes if _forgets(node)]:
        notes.append(
            f"BatchNormalization keeps the statistics of the last batch alone ({first_of(latest)}); "
            "an average over all batches, as of momentum=None, is in no file"
        )
    return notes


def _forgets(node: onnx.NodeProto) -> bool:
    """Whether it is a BatchNormalization whose running statistics are those of one batch: PyTorch's tracing exporter
    writes so what keeps a cumulative average."""
    trains = node.op_type == "BatchNormalization" and attribute(node, "training_mode") == 1
    return trains and attribute(node, "momentum") == 0


def train_dropouts(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], opset: int, every_one: bool) -> list[str]:
    """Make Dropouts drop that the module trained and the file has in inference form; the result is notes on the others.

    `opset`: the one that the model was exported at. PyTorch writes the dropout of `scaled_dot_product_attention`
    without `training_mode`, and for a module in eval mode no Dropout at all.
    """
    known = _known_scalars(model.graph)
    dropouts = [node for node in nodes_within(nodes) if node.op_type == "Dropout" and _ratio(node, known) != 0]
    idle = [node for node in dropouts if not _trains(node, known)]
    unsaid = [node for node in idle if not _states_mode(node)]
    training = any(_is_training(node, known) for node in nodes_within(nodes))
    from_torch = model.producer_name == "pytorch" and opset >= STATED_OPSET
    waking = idle if every_one else unsaid if from_torch or training else []
    if waking:
        model.graph.initializer.append(numpy_helper.from_array(np.array(True), TRAINS))
    for node in waking:
        node.input.extend([""] * (3 - len(node.input)))
        node.input[2] = TRAINS
    asleep = [node.name or node.output[0] for node in idle if node not in waking]
    notes = []
    if waking and not every_one and not from_torch:
        notes.append(
            f"{len(waking)} Dropouts have no training_mode ({first_of([node.name for node in waking])}); "
            "as others of the model train, they drop elements too"
        )
    if asleep:
        notes.append(
            f"{len(asleep)} Dropouts are in inference mode ({first_of(asleep)}), so they drop nothing; "
            "export the module in training mode, or pass --train, if they should"
        )
    return notes


def _is_training(node: onnx.NodeProto, known: dict[str, np.ndarray]) -> bool:
    """Whether the node shows that the file is a training export."""
    if node.op_type == "BatchNormalization":
        return bool(attribute(node, "training_mode"))
    return node.op_type == "Dropout" and _trains(node, known)


def _states_mode(node: onnx.NodeProto) -> bool:
    return len(node.input) > 2 and bool(node.input[2])


def _trains(node: onnx.NodeProto, known: dict[str, np.ndarray]) -> bool:
    """Whether the mode is training, or known only when the graph runs."""
    return _states_mode(node) and (node.input[2] not in known or bool(known[node.input[2]]))


def _ratio(node: onnx.NodeProto, known: dict[str, np.ndarray]) -> float | None:
    """The share that is dropped; None where it is known only when the graph runs."""
    if len(node.input) < 2 or not node.input[1]:
        return 0.5  # ONNX's default
    return float(known[node.input[1]].reshape(-1)[0]) if node.input[1] in known else None


def _known_scalars(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """Values of one element that the graph stores."""
    held = {tensor.name: tensor for tensor in graph.initializer}
    held |= {node.output[0]: made for node in graph.node if (made := constant_tensor(node)) is not None}
    return {name: array_of(tensor) for name, tensor in held.items() if prod(tensor.dims) == 1}
