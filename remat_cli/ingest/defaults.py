"""Writes defaults into nodes that leave an attribute out.

Invariant: afterwards a node means the same to tools that ignore defaults, such as onnx's own inliner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from remat_cli.onnx_graph.functions import FunctionKey
from remat_cli.onnx_graph.opsets import opset_of
from remat_cli.onnx_graph.walk import nodes_within


def give_defaults(model: onnx.ModelProto) -> str | None:
    """Complete all calls. The result names an attribute that cannot be completed, because a body hands it on and a
    caller may leave it out."""
    bodies = (model.graph.node, *(function.node for function in model.functions))
    calls: dict[FunctionKey, list[onnx.NodeProto]] = {}
    for body in bodies:
        for node in nodes_within(body):
            calls.setdefault((node.domain, node.op_type, node.overload), []).append(node)
    for function in model.functions:
        for call in calls.get(_key(function), ()):
            given = {attribute.name for attribute in call.attribute}
            call.attribute.extend(one for one in function.attribute_proto if one.name not in given)
    defaults = {_key(function): {one.name for one in function.attribute_proto} for function in model.functions}
    for function in model.functions:
        handed = set(_attributes_handed_on(function, defaults))
        for call in calls.get(_key(function), ()):
            if missing := handed - {attribute.name for attribute in call.attribute}:
                return min(missing)
    return None


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


def _attributes_handed_on(function: onnx.FunctionProto, defaults: dict[FunctionKey, set[str]]) -> Iterator[str]:
    """Attributes of the function's own that its body hands to calls which have another default for them."""
    for node in nodes_within(function.node):
        known = defaults.get((node.domain, node.op_type, node.overload), set())
        yield from (one.ref_attr_name for one in node.attribute if one.ref_attr_name and one.name in known)


def _key(function: onnx.FunctionProto) -> FunctionKey:
    return function.domain, function.name, function.overload
