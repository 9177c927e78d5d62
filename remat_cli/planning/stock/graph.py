"""The graph that default sessions run: what onnxruntime's optimizers make of a model, before any plan.

A plan of that graph leaves the optimizers nothing to fuse. So nothing that is added for the plan can come between, and
the graph's ops are the kernels that run.

Invariant: a default session computes each result of the graph by the very kernels by which it computes it in the
original; where that is impossible, there is no such graph. Where the file's own ops are planned, the values are known
that exist only within kernels that the runtime fuses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import onnx

from profiles.running import CannotRun
from profiles.signature import OpSignature
from profiles.survey import Ops
from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph, Op
from remat_cli.model.problem_of import Named
from remat_cli.model.signatures import ops_of
from remat_cli.onnx_graph.attributes import spelled
from remat_cli.planning.stock.numbering import Numbered, Shapes, number_kernels
from remat_cli.planning.subjects.fusing import as_the_runtime_has_it
from remat_cli.planning.subjects.optimized import heavy, optimized_graph
from remat_cli.runtime.optimized import optimize

MOVERS = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice", "Expand", "Gather"}


def default_graph(graph: Graph, may: bool = True) -> tuple[Graph, Numbered | None]:
    """The graph to plan for default sessions, and the kernels that the original runs there.

    The graph is the file's own where `may` forbids another, or where the optimized one leads to other kernels. There
    are no kernels where the runtime cannot run the model, or where its weights are too large to load only to see what
    is fused.
    """
    if heavy(graph):
        return graph, None
    made = optimized_graph(graph) if may else None
    shapes = shapes_of(graph) | (shapes_of(made) if made else {})
    try:
        own = kernels(graph, graph.model, shapes)
        if made is not None and kernels(graph, made.model, shapes).results() == own.results():
            return made, own
    except CannotRun:
        return graph, None
    return graph, own


def shapes_of(graph: Graph) -> dict[str, tuple[int, ...]]:
    return {name: value.shape for name, value in graph.values.items()}


def kernels(graph: Graph, model: onnx.ModelProto, shapes: Shapes) -> Numbered:
    """The kernels that a default session runs for a model whose external tensors lie where the graph's do. Raises
    CannotRun."""
    return number_kernels(optimize(model.SerializeToString(), graph.path.resolve().parent), shapes)


def new_kernels(graph: Graph) -> Ops:
    """The ops of the graph that default sessions make of the model, of those that it does not have itself."""
    made = optimized_graph(graph)
    if made is None:
        return Ops({})
    ops, own = ops_of(made), ops_of(graph).signatures
    new = {name: one for name, one in ops.signatures.items() if name not in own or _other(own[name], one)}
    return Ops(new, ops.free.intersection(new), ops.light.intersection(new))


def _other(one: OpSignature, other: OpSignature) -> bool:
    """Whether they are different kernels; optimizers spell defaults of attributes out."""
    return replace(one, attributes=(), opset=0) != replace(other, attributes=(), opset=0)


def keeping_bits(graph: Graph, named: Named, fused: bool = False) -> Named:
    """The problem with the values marked that exist only within kernels that the runtime fuses by default. A graph that
    is `fused` already has none.

    No result may be left out there, because optimizers remove a Dropout without its mask. Where the runtime cannot run
    the model, there is no default session. Weights of more than `HEAVY_BYTES` are not loaded only to see what would be
    fused.
    """
    named = replace(named, problem=replace(named.problem, optional=frozenset()))
    if fused or heavy(graph):
        return named
    try:
        names = inner_values(graph)
    except BadInput:
        return named
    inner = frozenset(place for place, name in enumerate(named.values) if name in names)
    return replace(named, problem=replace(named.problem, inner=inner))


def inner_values(graph: Graph, provider: str = "cpu") -> frozenset[str]:
    """Values that the optimized graph no longer has, because another op's kernel computes them.

    Values that were only moved about are left out, because their bits are the same. So are values that depend on
    weights alone or that another op computes too: they vanish without being fused.
    """
    fused = as_the_runtime_has_it(
        graph, provider, "all"
    ).graph  # at this level a convolution, a sum and a Relu become one op
    left = {name for node in fused.node for name in node.output}.union(entry.name for entry in fused.initializer)
    fixed = set(graph.weights)
    twins = Counter(_computes(op) for op in graph.ops)
    inner: set[str] = set()
    for op in graph.ops:
        if fixed.issuperset(op.reads):
            fixed.update(op.writes)
        elif op.op_type not in MOVERS and twins[_computes(op)] == 1:
            inner.update(name for name in op.writes if name not in left)
    read = {name for op in graph.ops for name in op.reads}
    return frozenset(inner & read - set(graph.outputs))


def _computes(op: Op) -> tuple[object, ...]:
    return op.domain, op.op_type, op.inputs, spelled(op.node)
