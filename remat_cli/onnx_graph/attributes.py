"""The attributes of a node, by their names, and what the parts of a model say of themselves, key by key.

Invariant: values are as onnx has them; a graph is the node's own, and no copy. Of a key that is
said twice the last word holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import helper


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    return next((helper.get_attribute_value(entry) for entry in node.attribute if entry.name == name), default)


def set_attribute(node: onnx.NodeProto, name: str, value: object) -> None:
    """Give it this value, and no other that it had."""
    drop_attribute(node, name)
    node.attribute.append(helper.make_attribute(name, value))


def drop_attribute(node: onnx.NodeProto, name: str) -> None:
    for entry in [entry for entry in node.attribute if entry.name == name]:
        node.attribute.remove(entry)


def spelled(node: onnx.NodeProto) -> tuple[bytes, ...]:
    """The same for nodes whose attributes say the same, in whatever order."""
    return tuple(sorted(entry.SerializeToString(deterministic=True) for entry in node.attribute))


def said_in(part: onnx.ModelProto | onnx.GraphProto | onnx.NodeProto | onnx.ValueInfoProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in part.metadata_props}


def say(model: onnx.ModelProto, own: Mapping[str, str]) -> None:
    """Say this after all else; what the model said under the same keys goes."""
    kept = {key: value for key, value in said_in(model).items() if key not in own}
    helper.set_model_props(model, {**kept, **own})
