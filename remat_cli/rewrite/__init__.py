"""A plan becomes an ONNX model, with copies of the ops that are recomputed, for a session that keeps the file's order.

Invariant: inputs, outputs, opsets, initializers and metadata are the original's; results are bit for bit the same.
What sessions of stock ONNX Runtime need besides is added by `planning.stock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import onnx

from remat_cli.model.graph import Graph
from remat_cli.model.proved import Promise
from remat_cli.model.session_bytes import session_bytes
from remat_cli.rewrite.copies import CopyNames, EmittedNode, OpRun, copy_ops, infos
from remat_cli.rewrite.predict import Prediction
from remat_cli.rewrite.unread import free_unread
from solvers.plan import Compute, Plan
from solvers.problem import Problem

ZERO_BYTES = 8  # the constants for the bounds of an empty slice


@dataclass(frozen=True, slots=True)
class Rewritten:
    """`clones`, `guards`, `anchors`, `hidden_shapes`: how many nodes were added, and for what."""

    model: onnx.ModelProto
    promise: Promise
    prediction: Prediction
    as_run: Prediction | None = None  # of what the session makes of the model, where that fuses ops
    hidden: frozenset[str] = frozenset()  # values whose shapes the session's planner does not see
    clones: int = 0
    anchors: int = 0
    guards: int = 0
    hidden_shapes: int = 0
    bare: frozenset[str] = frozenset()  # values that optimizers find as they are in the original
    shown: frozenset[str] = frozenset()  # values whose shapes are not hidden from them
    astray: frozenset[str] = frozenset()  # values around which its session would run other kernels than the original's
    unpinned: frozenset[str] = frozenset()  # outputs in the places of inputs that its session might write too early


def rewrite(graph: Graph, problem: Problem, plan: Plan, launch: int = 0) -> Rewritten:
    """The model that runs `plan`. `launch`: the cost of the cheapest kernel."""
    names = CopyNames(graph)
    plain, clones = plain_copies(graph, plan, names)
    steps, constants = free_unread(graph, plain, names)
    prediction = Prediction(graph, problem, steps, [len(constant.raw_data) for constant in constants], launch)
    promise = replace(prediction.strict_promise(), itself=session_bytes(graph, plan.order(), len(steps) - len(plain)))
    model = model_of(graph, steps, constants)
    return Rewritten(model, promise, prediction, clones=clones, anchors=len(steps) - len(plain))


def plain_copies(graph: Graph, plan: Plan, names: CopyNames) -> tuple[list[EmittedNode], int]:
    """The plan's computes as nodes, and how many of these compute something again."""
    runs = [
        OpRun(graph.ops[statement.node], tuple(register is not None for register in statement.registers))
        for statement in plan.statements
        if isinstance(statement, Compute)
    ]
    plain = copy_ops(graph, runs, names)
    return plain, len(plain) - len({run.op.name for run in runs})


def additions(problem: Problem) -> int:
    """Bytes that such a rewriting may add to the needs of a plan; room for them is left from the start."""
    results = (sum(write not in problem.optional for write in node.writes) for node in problem.nodes)
    read = {value for node in problem.nodes for value in node.reads}.union(problem.outputs)
    unread = any(write not in read and write not in problem.optional for node in problem.nodes for write in node.writes)
    return ZERO_BYTES if unread or any(count > 1 for count in results) else 0


def original(graph: Graph, problem: Problem) -> Rewritten:
    """The model as it is, in the order of its file."""
    prediction = Prediction(graph, problem, as_they_stand(graph))
    return Rewritten(graph.model, prediction.strict_promise(), prediction)


def as_they_stand(graph: Graph) -> list[EmittedNode]:
    """The graph's ops as nodes, each once."""
    return [EmittedNode(op.node, op, {name: name for name in op.writes}, op.reads) for op in graph.ops]


def model_of(
    graph: Graph,
    steps: Sequence[EmittedNode],
    constants: Sequence[onnx.TensorProto],
    hidden: frozenset[str] = frozenset(),
) -> onnx.ModelProto:
    """The model with these nodes. `hidden`: values whose shapes it does not tell."""
    model = deepcopy(graph.model)
    fixed = [node for node in graph.model.graph.node if node.op_type == "Constant"]
    made = {name for step in steps for name in step.node.output}
    known = {entry.name for entry in graph.model.graph.value_info}
    gone = hidden.union(name for op in graph.ops for name in op.writes if name not in made)
    kept = [entry for entry in graph.model.graph.value_info if entry.name not in gone]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend([*fixed, *(step.node for step in steps)])
    model.graph.value_info.extend([*kept, *(info for info in infos(graph, steps, known) if info.name not in hidden)])
    model.graph.initializer.extend(constants)
    return model
