"""Replaces functions and sequences by the ops they consist of; functions only where the runtime does so too.

Invariant: afterwards the nodes of the main graph are the kernels that run, so that a plan can promise their order.
Model-local functions go first, then standard functions that ONNX Runtime has no kernel for. A graph with ops that only
a training build can run keeps the latter, because training builds have those kernels. Before
that, nodes get the defaults that they leave out, which tools such as onnx's own inliner ignore.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

import onnx
import onnx.inliner
from onnx import helper

from remat_cli.errors import BadInput
from remat_cli.ingest.without_sequences import write_out
from remat_cli.model.semantics import EXPANDED, needs_training_build
from remat_cli.onnx_graph.functions import inline_local, with_types
from remat_cli.onnx_graph.opsets import opset_of
from remat_cli.onnx_graph.walk import nodes_within


def expand(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The model with its functions replaced; the same object where there is nothing to replace."""
    if model.functions:
        model = inline_local(model, path)
    model = write_out(model)
    if any(needs_training_build(node) for node in model.graph.node):
        return model
    model = _with_casts(model)
    while found := {(node.domain, node.op_type) for node in model.graph.node if _is_expanded(node)}:
        calls = _count(model)
        model = _inline_standard(model, sorted(found), path)
        if _count(model) >= calls and found == {(n.domain, n.op_type) for n in model.graph.node if _is_expanded(n)}:
            break  # this version of onnx has no body for them either, so each stays one op
    return model


def _with_casts(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a Cast for each CastLike whose type is known; onnx's inliner does not find all of them."""
    if not any(node.op_type == "CastLike" for node in model.graph.node):
        return model
    typed = with_types(model).graph
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*typed.input, *typed.output, *typed.value_info)}
    made = deepcopy(model)
    for node in made.graph.node:
        if node.op_type == "CastLike" and _is_expanded(node) and (kind := kinds.get(node.input[1])):
            node.op_type = "Cast"
            node.attribute.append(helper.make_attribute("to", kind))
            del node.input[1:]
    return made


def _inline_standard(model: onnx.ModelProto, ops: list[tuple[str, str]], path: Path) -> onnx.ModelProto:
    """The model with these functions of ONNX replaced by their bodies."""
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    give_schema_defaults((node for node in model.graph.node if _is_expanded(node)), opset)
    try:
        inlined = onnx.inliner.inline_selected_functions(with_types(model), ops, inline_schema_functions=True)
    except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        kinds = ", ".join(kind for _, kind in ops)
        raise BadInput(f"{path}: {kinds} cannot be written out: {' '.join(str(error).split())}") from error
    del inlined.graph.value_info[:]
    inlined.graph.value_info.extend(model.graph.value_info)
    return inlined


def _is_expanded(node: onnx.NodeProto) -> bool:
    return node.domain in ("", "ai.onnx") and node.op_type in EXPANDED


def _count(model: onnx.ModelProto) -> int:
    return sum(1 for node in model.graph.node if _is_expanded(node))


def give_misread_defaults(model: onnx.ModelProto) -> None:
    """Complete the nodes whose defaults shape inference, in onnx and onnxruntime, does not take from the schema."""
    if misread := [node for node in nodes_within(model.graph.node) if _is_misread(node)]:
        give_schema_defaults(misread, opset_of(model))


def _is_misread(node: onnx.NodeProto) -> bool:
    return node.op_type == "STFT" and node.domain in ("", "ai.onnx")  # without `onesided` all bins are inferred


def give_schema_defaults(nodes: Iterable[onnx.NodeProto], opset: int) -> None:
    """Complete the calls of ONNX's own functions, whose defaults are in their schemas."""
    for node in nodes:
        if onnx.defs.has(node.op_type, opset, ""):
            known = onnx.defs.get_schema(node.op_type, opset, "").attributes
            given = {attribute.name for attribute in node.attribute}
            defaults = (one.default_value for name, one in known.items() if name not in given)
            node.attribute.extend(one for one in defaults if one.type != onnx.AttributeProto.UNDEFINED)
