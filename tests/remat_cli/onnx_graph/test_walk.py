"""Nodes of subgraphs, and what they read of what stands outside."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from remat_cli.onnx_graph.walk import captures, has_subgraph, nodes_within

INNER = helper.make_graph(
    [helper.make_node("Add", ["x", "deep"], ["y"])],
    "inner",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
)


def nested() -> onnx.NodeProto:
    """An If within an If; `own` is the outer branch's, `deep` and `far` stand outside of both."""
    inside = helper.make_node("If", ["own"], ["z"], then_branch=INNER, else_branch=INNER)
    stored = helper.make_tensor("own", TensorProto.BOOL, [], [True])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("z", "far")]
    branch = helper.make_graph([inside], "branch", [], ends, [stored])
    return helper.make_node("If", ["condition"], ["a", "b"], then_branch=branch, else_branch=branch)


def test_captures_are_what_no_subgraph_has() -> None:
    assert captures(nested()) == ("deep", "far")
    assert captures(helper.make_node("Relu", ["x"], ["y"])) == ()


def test_nodes_within_are_met_after_the_node_that_holds_them() -> None:
    assert [node.op_type for node in nodes_within([nested()])] == ["If", *["If", "Add", "Add"] * 2]


def test_an_attribute_of_another_kind_is_no_subgraph() -> None:
    assert has_subgraph(nested())
    assert not has_subgraph(helper.make_node("Concat", ["x"], ["y"], axis=0))
