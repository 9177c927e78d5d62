"""A plan becomes an ONNX model: clones for what is computed again, in an order that holds in both session types.

Invariant: inputs, outputs, opsets, initializers and metadata are the original's; results are bit for bit the same. One
file serves both promises: what keeps the order by default takes no memory where the file's own order is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from remat_cli.model.graph import Graph
from remat_cli.model.promise import Promise
from remat_cli.rewrite.anchors import anchored
from remat_cli.rewrite.copies import Names, Run, Step, copies, infos
from remat_cli.rewrite.guards import Guards
from remat_cli.rewrite.predict import Prediction, written
from remat_cli.rewrite.veils import Veils
from solvers.plan import Compute, Plan
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Rewritten:
    model: onnx.ModelProto
    promise: Promise
    prediction: Prediction
    baseline: Promise  # the same of the original, in its file's order
    clones: int
    guards: int
    anchors: int
    veils: int


def rewrite(graph: Graph, problem: Problem, plan: Plan, launch: int = 0, strict_only: bool = False) -> Rewritten:
    """The model that runs `plan`, and what it needs in each session type.

    `launch`: what the least kernel costs. `strict_only`: without what keeps order and buffers in default sessions.
    """
    runs = [
        Run(graph.ops[statement.node], tuple(register is not None for register in statement.registers))
        for statement in plan.statements
        if isinstance(statement, Compute)
    ]
    names = Names(graph)
    plain = copies(graph, runs, names)
    inner = {name for place, name in enumerate(written(graph)) if place in problem.inner}
    guards = Guards(graph, names, inner)
    guarded = guards.guarded(plain)
    steps, zero = anchored(graph, guarded, names, inner, not strict_only)
    hidden = set() if strict_only else Prediction(graph, problem, steps).idle(_around(guarded, inner))
    veils = Veils(graph, names)
    if hidden:
        veiled = veils.veiled(guarded, hidden)
        steps, zero = anchored(graph, veiled, names, inner)
    constants = [*guards.constants.values(), *veils.constants, *zero]
    model = _model(graph, steps, constants, hidden | veils.made)
    prediction = Prediction(graph, problem, steps, [len(constant.raw_data) for constant in constants], launch)
    return Rewritten(
        model=model,
        promise=prediction.promise(hidden),
        prediction=prediction,
        baseline=_baseline(graph, problem),
        clones=len(plain) - len({run.op.name for run in runs}),
        guards=len(guarded) - len(plain),
        anchors=sum(step.op is None for step in steps) - (len(guarded) - len(plain)) - len(veils.before),
        veils=len(hidden),
    )


def _around(steps: Sequence[Step], inner: set[str]) -> set[str]:
    """All that fused ops read and write: their fusion needs shapes that are known."""
    fused = {name for step in steps for name, value in step.origin.items() if value in inner}
    touched = [{*step.reads, *step.node.output} for step in steps]
    return set().union(*(names for names in touched if names & fused))


def _baseline(graph: Graph, problem: Problem) -> Promise:
    runs = [Run(op, (True,) * len(op.writes)) for op in graph.ops]
    return Prediction(graph, problem, copies(graph, runs, Names(graph))).promise()


def _model(
    graph: Graph, steps: Sequence[Step], constants: Sequence[onnx.TensorProto], hidden: set[str]
) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    fixed = [node for node in graph.model.graph.node if node.op_type == "Constant"]
    made = {name for step in steps for name in step.node.output}
    known = {entry.name for entry in graph.model.graph.value_info}
    gone = {name for op in graph.ops for name in op.writes if name not in made}
    kept = [entry for entry in graph.model.graph.value_info if entry.name not in gone | hidden]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend([*fixed, *(step.node for step in steps)])
    model.graph.value_info.extend([*kept, *(info for info in infos(graph, steps, known) if info.name not in hidden)])
    model.graph.initializer.extend(constants)
    return model
