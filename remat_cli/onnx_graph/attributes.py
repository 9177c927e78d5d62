"""The attributes of a node, by their names.

Invariant: values are as onnx has them; a graph is the node's own, and no copy.
"""

from __future__ import annotations

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
