"""What onnxruntime makes of a model's file, as a graph with the original's names: its ops are the kernels that run.

Invariant: inputs, outputs and weights are the original's. A file that says that it was optimized is planned as it
stands, for programs that set a lower level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx
from onnx import helper

from profiles.running import CannotRun
from remat_cli.errors import BadInput
from remat_cli.ingest import graph_of
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.onnx_graph.stored import is_beside
from remat_cli.onnx_graph.walk import by_rank, captures, edges
from remat_cli.runtime.optimized import LAYOUTS, SAYS, optimize

HEAVY_BYTES = 1 << 30


def written_out(graph: Graph) -> Graph | None:
    """The model with the kernels that a strict session runs in place of those that it lacks; None if it lacks none.

    On a CPU, for example, float16 ops become casts and float32 kernels. The file holds none of these, so a plan that
    counts them needs a graph that does.
    """
    made = optimized_graph(graph, "disabled")
    if made is None or {op.name for op in made.ops} == {op.name for op in graph.ops}:
        return None
    return replace(made, expanded=True)


def optimized_graph(graph: Graph, level: str = "all") -> Graph | None:
    """The model as onnxruntime optimizes it, without this machine's own layouts; None where its weights are not
    loaded."""
    if heavy(graph) or SAYS in said_in(graph.model):
        return None
    try:
        made = optimize(graph.model.SerializeToString(), graph.path.resolve().parent, level, without=LAYOUTS)
        _as_given(made, graph)
        return replace(graph_of(made, graph.path, graph.sha256), dims=graph.dims, expanded=graph.expanded)
    except (CannotRun, BadInput):
        return None


def heavy(graph: Graph) -> bool:
    """Whether the weights are too large to be loaded only to see what would be fused."""
    return sum(graph.values[name].bytes for name in graph.weights) > HEAVY_BYTES


def _as_given(made: onnx.ModelProto, graph: Graph) -> None:
    """Keep external weights outside of the file, and give the new graph's values the types and shapes known of the old
    one's."""
    outside = {tensor.name: tensor for tensor in graph.model.graph.initializer if is_beside(tensor)}
    for tensor in made.graph.initializer:
        old = outside.get(tensor.name)
        if old is not None and (old.dims, old.data_type) == (tensor.dims, tensor.data_type):
            tensor.CopyFrom(old)
    nodes = _in_order(made.graph, graph)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    told = {entry.name for entry in (*made.graph.value_info, *made.graph.output)}
    made.graph.value_info.extend(_untold(made, graph, told))


def _in_order(made: onnx.GraphProto, graph: Graph) -> list[onnx.NodeProto]:
    """The nodes as near to the order of the original's ops as possible, because optimizers leave an order of their
    own."""
    nodes = list(made.node)
    place = {name: index for index, op in enumerate(graph.ops) for name in op.writes}
    reads = edges([[*node.input, *captures(node)] for node in nodes], [node.output for node in nodes])
    wanted = [min((place[name] for name in node.output if name in place), default=len(place)) for node in nodes]
    for index in reversed(range(len(nodes))):  # the nodes stand in an order that runs
        for source in reads[index]:
            if not any(name in place for name in nodes[source].output):  # a new node comes where it is first read
                wanted[source] = min(wanted[source], wanted[index])
    return [nodes[index] for index in by_rank(reads, wanted)]


def _untold(made: onnx.ModelProto, graph: Graph, told: set[str]) -> list[onnx.ValueInfoProto]:
    known: Mapping[str, object] = graph.values
    names = [name for node in made.graph.node for name in node.output if name in known and name not in told]
    return [helper.make_tensor_value_info(n, graph.values[n].dtype, graph.values[n].shape) for n in names]
