"""What is known about control flow before the graph runs: how often a Loop runs its body, which branch an If takes.

Invariant: every answer holds for all data; where it depends on data, there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy

import numpy as np
import onnx
from onnx import helper

from remat_cli.ingest.runtime_types import Partial
from remat_cli.onnx_graph.attributes import attribute
from remat_cli.onnx_graph.stored import constant_tensor

BRANCHES = ("then_branch", "else_branch")
HANDED_ON = ("Identity", "Cast")


def trips(node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> int | None:
    """How often the Loop runs its body, if its count is known and nothing in its body ends it before."""
    count = constants.get(node.input[0])
    if count is None or count.size != 1:
        return None
    if len(node.input) > 1 and node.input[1]:
        begins = constants.get(node.input[1])
        if begins is None:
            return None
        if not begins.all():
            return 0
    body = attribute(node, "body")
    return max(0, int(count.reshape(-1)[0])) if _goes_on(body, constants) else None


def _goes_on(body: onnx.GraphProto, constants: Mapping[str, np.ndarray]) -> bool:
    """Whether the body's condition is always the one it was given, or true."""
    makers = {name: node for node in body.node for name in node.output}
    stored = {tensor.name: tensor for tensor in body.initializer}
    name = body.output[0].name
    while name in makers and makers[name].op_type in HANDED_ON:
        name = makers[name].input[0]
    if len(body.input) > 1 and name == body.input[1].name:
        return True
    tensor = stored.get(name)
    if name in makers and makers[name].op_type == "Constant":
        tensor = constant_tensor(makers[name])
    if tensor is not None:
        return bool(onnx.numpy_helper.to_array(tensor).all())
    return name not in makers and name in constants and bool(constants[name].all())


def body_as_begun(
    node: onnx.NodeProto, types: Mapping[str, Partial], carries: Sequence[Partial | None], outer: Iterable[str]
) -> onnx.GraphProto | None:
    """The Loop's body as a graph of its own, with the types of the values it `carries` into a round; `outer`: what it
    captures.

    None if it carries a value that is not a tensor of known rank.
    """
    body = attribute(node, "body")
    known = [kind for kind in carries if kind is not None]
    if len(body.input) != 2 + len(known) or len(known) < len(carries):
        return None
    found = deepcopy(body)
    for value, kind in zip(found.input[2:], known, strict=True):
        value.CopyFrom(helper.make_tensor_value_info(value.name, *kind))
    for value in found.output[1 : 1 + len(known)]:
        value.ClearField("type")
    found.input.extend(helper.make_tensor_value_info(name, *types[name]) for name in outer)
    return found


def depends_on_data(node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> bool:
    """Whether other data may make the node run its subgraphs differently."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "If":
        return node.input[0] not in constants
    return node.op_type == "Loop" and trips(node, constants) is None


def branches_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Both branches of an If; none of any other op."""
    return [entry.g for entry in node.attribute if entry.name in BRANCHES] if node.op_type == "If" else []


def taken_branch(node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> onnx.GraphProto | None:
    """The branch that an If of constant condition takes."""
    condition = constants.get(node.input[0]) if node.op_type == "If" and node.input else None
    if condition is None or condition.size != 1:
        return None
    found: onnx.GraphProto = attribute(node, "then_branch" if condition.all() else "else_branch")
    return found


def settle_branch(node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> onnx.NodeProto:
    """An If of constant condition, with the branch that it takes in both places."""
    branch = taken_branch(node, constants)
    if branch is None:
        return node
    found = deepcopy(node)
    for name in BRANCHES:
        attribute(found, name).CopyFrom(branch)
    return found
