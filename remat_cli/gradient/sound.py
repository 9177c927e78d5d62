"""Checks a node against its op's schema before it is read: numbers of inputs and outputs, attributes and their kinds.

Invariant: a branch is not checked here; its nodes are checked when the branch is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import onnx
from onnx import checker, defs

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.walk import has_subgraph, subgraphs

STATISTICS = 3  # outputs of a BatchNormalization that trains, from opset 14 on


def check_node(node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
    """`opsets`: the version of each domain."""
    version = opsets.get(node.domain, 1)
    if (
        not defs.has(node.op_type, version, node.domain)
        or defs.get_schema(node.op_type, version, node.domain).deprecated
    ):
        return  # there is no schema; whether the op can be differentiated is decided later
    context = checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {**opsets, node.domain: version}
    try:
        checker.check_node(_without_branches(node), context)
    except checker.ValidationError as error:
        reason = " ".join(str(error).split("==>")[0].split())
        what = f"{node.op_type} node '{node.name}' is not as ONNX defines the op: {reason}"
        raise BadInput(what + _advice(node)) from error


def _advice(node: onnx.NodeProto) -> str:
    """What helps, where an exporter is known to write such a node."""
    if node.op_type == "BatchNormalization" and len(node.output) > STATISTICS:
        return (
            " PyTorch's tracing exporter writes so what InstanceNorm's running statistics are of: "
            "export with torch.onnx.export(..., dynamo=True, optimize=False)"
        )
    return ""


def _without_branches(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node without its branches, because the checker would look in them for what is defined outside."""
    if not has_subgraph(node):
        return node
    bare = deepcopy(node)
    for branch in subgraphs(bare):
        branch.Clear()
        branch.name = "branch"
    return bare
