"""What a rewritten model holds once a default session has optimized it: by the very nodes that run, in their order.

Ops of the file that optimizers fuse run in another order than the file's, so that a prediction by the file's own nodes
may be half of what is held. Invariant: nothing is run, and a size that nobody knows counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import onnx
from onnx import helper

from remat_cli.errors import BadInput
from remat_cli.ingest import graph_of
from remat_cli.model.graph import Graph, Value
from remat_cli.model.problem_of import as_it_stands, problem_of
from remat_cli.planning.stock.numbering import Numbered
from remat_cli.planning.stock.prediction import StockPrediction
from remat_cli.rewrite import as_they_stand
from solvers.plan import Plan, lower
from solvers.problem import Problem


class AsRun(StockPrediction):
    """Of a graph that onnxruntime wrote, whose nodes stand in the order in which they run."""

    @cached_property
    def default(self) -> Plan:
        return lower(self.problem, range(len(self.problem.nodes)))


def foretell(
    graph: Graph, problem: Problem, after: Numbered, origin: Mapping[str, str]
) -> tuple[AsRun, frozenset[str]] | None:
    """The prediction of the optimized model, and the values whose shapes its planner does not see; None where it is no
    graph of ours. `origin`: the original's value that each value of the rewritten model is a copy of."""
    told = {entry.name: entry for entry in (*after.graph.value_info, *after.graph.output)}
    names = [name for node in after.graph.node for name in node.output if name]
    known = {name: graph.values[origin.get(name, name)] for name in names if origin.get(name, name) in graph.values}
    opsets = [helper.make_opsetid(domain, version) for domain, version in after.opsets.items()]
    model = helper.make_model(after.graph, opset_imports=opsets)
    outputs = {entry.name for entry in after.graph.output}
    del model.graph.value_info[:]
    model.graph.value_info.extend(_info(name, value) for name, value in known.items() if name not in outputs)
    model.graph.value_info.extend(told[name] for name in told if name not in known and name not in outputs)
    try:
        made = graph_of(model, graph.path, graph.sha256)
    except BadInput:
        return None
    work = {name: node.workspace for op, node in zip(graph.ops, problem.nodes, strict=True) for name in op.writes}
    costs = {op.name: (0, max(work.get(origin.get(name, name), 0) for name in op.writes)) for op in made.ops}
    whole = as_it_stands(problem_of(made, costs).problem)
    hidden = frozenset(names) - told.keys()
    steps = [replace(step, hides=not hidden.isdisjoint(step.node.output)) for step in as_they_stand(made)]
    return AsRun(made, whole, steps), hidden


def _info(name: str, value: Value) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, value.dtype, value.shape)
