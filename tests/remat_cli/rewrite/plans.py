"""Random legal orders with repeats, and models with what makes rewriting hard."""

from __future__ import annotations

import random

import onnx
from onnx import TensorProto, helper

from remat_cli.ingest import graph_of
from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import as_rewritten, problem_of
from solvers.problem import Problem
from tests.remat_cli.model.test_problem_of import HERE


def subject(model: onnx.ModelProto) -> tuple[Graph, Problem]:
    graph = graph_of(model, HERE)
    return graph, as_rewritten(problem_of(graph, {op.name: (1, 0) for op in graph.ops}).problem)


def random_order(problem: Problem, seed: int, share: float = 0.4) -> list[int]:
    """The nodes in their order, with some of what was made before made again in between, ancestors first."""
    rng = random.Random(seed)
    order: list[int] = []
    for index in range(len(problem.nodes)):
        if order and rng.random() < share:
            again = rng.sample(range(index), min(index, rng.randint(1, 4)))
            order += [node for node in sorted(again) if not problem.nodes[node].once]
        order.append(index)
    return order


def captured() -> onnx.ModelProto:
    """An If whose branches read outer values, and a Dropout-like op whose second result can be left out."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 6]) for name in "xy")
    branches = []
    for kind in ("Neg", "Exp"):
        out = helper.make_tensor_value_info("inner", TensorProto.FLOAT, [4, 6])
        nodes = [
            helper.make_node(kind, ["a"], [f"deep_{kind}"]),
            helper.make_node("Add", [f"deep_{kind}", "b"], ["inner"]),
        ]
        branches.append(helper.make_graph(nodes, kind, [], [out]))
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    nodes = [
        helper.make_node("Tanh", ["x"], ["a"], name="tanh"),
        helper.make_node("MaxPool", ["image"], ["pooled", "places"], name="pool", kernel_shape=[2, 2]),
        helper.make_node("Sigmoid", ["a"], ["b"], name="sigmoid"),
        helper.make_node("If", ["flag"], ["c"], name="choice", then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Mul", ["c", "a"], ["y"], name="mul"),
        helper.make_node("ReduceSum", ["pooled"], ["z"], name="sum", keepdims=0),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 4, 4])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "captured", [x, flag, image], [y, z])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
