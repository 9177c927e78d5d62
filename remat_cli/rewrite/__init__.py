"""A plan becomes an ONNX model, with copies of the ops that are recomputed, in an order that its session keeps.

Invariant: inputs, outputs, opsets, initializers and metadata are the original's; results are bit for bit the same. What
is added because of a session's own optimizers takes no memory where the file's own order is followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import onnx

from remat_cli.model.graph import Graph
from remat_cli.model.problem_of import as_it_stands
from remat_cli.model.promise import Promise
from remat_cli.model.semantics import needs_training_build
from remat_cli.model.session_bytes import session_bytes
from remat_cli.model.sessions import DEFAULT, Session
from remat_cli.onnx_graph.orders import edges, strict_order
from remat_cli.rewrite.anchors import add_anchors, can_anchor, free_unread
from remat_cli.rewrite.copies import CopyNames, EmittedNode, OpRun, copy_ops, infos
from remat_cli.rewrite.guards import Guards
from remat_cli.rewrite.hidden_shapes import HiddenShapes
from remat_cli.rewrite.pins import Pinning, find_pins
from remat_cli.rewrite.predict import WAITING_PARTS, Prediction, values_of
from solvers.plan import Compute, Plan, lower
from solvers.problem import Problem
from solvers.simulate import simulate

HIDINGS = 1 + len(WAITING_PARTS)
SHAPES_BYTES = 1024  # the constants of guards and hidden shapes, mostly
ZERO_BYTES = 8  # the constants for the bounds of an empty slice


@dataclass(frozen=True, slots=True)
class Rewritten:
    model: onnx.ModelProto
    promise: Promise
    prediction: Prediction
    hidden: frozenset[str]  # values whose shapes the session's planner does not see
    clones: int
    guards: int
    anchors: int
    hidden_shapes: int
    bare: frozenset[str] = frozenset()  # values that optimizers find as they are in the original
    shown: frozenset[str] = frozenset()  # values whose shapes are not hidden from them
    astray: frozenset[str] = frozenset()  # values around which its session would run other kernels than the original's
    unpinned: frozenset[str] = frozenset()  # outputs in the places of inputs that its session might write too early


@dataclass(frozen=True, slots=True)
class Manner:
    """How a model is rewritten. `launch`: the cost of the cheapest kernel. `bare`: values to let be. `shown`: values
    whose shapes the session sees.

    `hiding`: how many steps of values are hidden from the session's planner; more are hidden where a `budget` needs it.
    """

    launch: int = 0
    bare: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    hiding: int = 0
    budget: int | None = None


PLAINLY = Manner()


def rewrite(
    graph: Graph, problem: Problem, plan: Plan, session: Session = DEFAULT, manner: Manner = PLAINLY
) -> Rewritten:
    """The model that runs `plan` in such a session."""
    runs = [
        OpRun(graph.ops[statement.node], tuple(register is not None for register in statement.registers))
        for statement in plan.statements
        if isinstance(statement, Compute)
    ]
    names = CopyNames(graph)
    plain = copy_ops(graph, runs, names)
    clones = len(plain) - len({run.op.name for run in runs})
    made = _robust(graph, problem, plain, names, manner) if session.robust else _lean(graph, plain, names)
    sizes = [len(constant.raw_data) for constant in made.constants]
    prediction = Prediction(graph, problem, made.steps, sizes, manner.launch)
    promise = prediction.promise(made.hidden) if session.robust else prediction.strict_promise()
    itself = session_bytes(graph, plan.order(), len(made.steps) - len(plain))
    return Rewritten(
        model=_model(graph, made.steps, made.constants, made.hidden | made.untold),
        promise=replace(promise, itself=itself, hiding=made.hiding if session.robust else None),
        prediction=prediction,
        hidden=made.hidden,
        clones=clones,
        guards=made.guards,
        anchors=made.anchors,
        hidden_shapes=len(made.hidden),
        bare=manner.bare,
        shown=manner.shown,
    )


def additions(session: Session, problem: Problem) -> int:
    """Bytes that such a rewriting may add to the needs of a plan; room for them is left from the start."""
    if session.robust:
        return SHAPES_BYTES
    results = (sum(write not in problem.optional for write in node.writes) for node in problem.nodes)
    read = {value for node in problem.nodes for value in node.reads}.union(problem.outputs)
    unread = any(write not in read and write not in problem.optional for node in problem.nodes for write in node.writes)
    return ZERO_BYTES if unread or any(count > 1 for count in results) else 0


@dataclass(frozen=True, slots=True)
class _Made:
    """Steps in file order, their constants, and how many were added for what. `untold`: shapes that the model leaves
    out."""

    steps: list[EmittedNode]
    constants: list[onnx.TensorProto]
    guards: int = 0
    anchors: int = 0
    hidden: frozenset[str] = frozenset()
    untold: frozenset[str] = frozenset()
    hiding: int = 0


def _lean(graph: Graph, plain: list[EmittedNode], names: CopyNames) -> _Made:
    """For a session that runs the file as it stands: only what lets unread results be freed is added."""
    steps, zero = free_unread(graph, plain, names)
    return _Made(steps, zero, anchors=len(steps) - len(plain))


def _robust(graph: Graph, problem: Problem, plain: list[EmittedNode], names: CopyNames, manner: Manner) -> _Made:
    """For a session that merges, fuses, reorders and keeps idle buffers."""
    fused = (name for place, name in enumerate(values_of(graph)) if place in problem.inner)
    inner = manner.bare.union(graph.loose, fused)
    guards = Guards(graph, names, inner)
    guarded = guards.guarded(plain)
    anchored = _anchored(graph, guarded, names, inner)
    shown = {name for step in guarded for name, value in step.origin.items() if value in manner.shown}
    known = shown | _around(guarded, inner)
    hidden, hiding = _hide(Prediction(graph, problem, anchored.steps), known, manner.hiding, manner.budget)
    hidden_shapes = HiddenShapes(graph, names)
    if hidden:
        hidden_so = hidden_shapes.hiding(guarded, hidden)
        anchored = _anchored(graph, hidden_so, names, inner)
    added = len(guarded) - len(plain)
    return replace(
        anchored,
        constants=[*guards.constants.values(), *hidden_shapes.constants, *anchored.constants],
        guards=added,
        anchors=sum(step.op is None for step in anchored.steps) - added - len(hidden_shapes.before),
        hidden=frozenset(hidden),
        untold=anchored.untold.union(hidden_shapes.made),
        hiding=hiding,
    )


def _anchored(graph: Graph, steps: Sequence[EmittedNode], names: CopyNames, inner: frozenset[str]) -> _Made:
    """The steps with anchors, and with updates of inputs pinned to what reads those."""
    pins = find_pins(graph, steps, lambda step: can_anchor(graph, step, inner))
    pinning = Pinning(graph, names, inner)
    made, zero = add_anchors(graph, steps, names, inner, pins, pinning)
    return _Made(made, [*pinning.constants.values(), *zero], untold=frozenset(pinning.made))


def _hide(prediction: Prediction, known: set[str], least: int, budget: int | None) -> tuple[set[str], int]:
    """The values to hide, and the number of the step: the first that keeps to the budget, or the one that comes
    nearest."""
    hidden = prediction.idle(known, least)
    if budget is None or prediction.fuses or (held := prediction.later(hidden)) <= budget:
        return hidden, least
    best = held, hidden, least
    for hiding in range(least + 1, HIDINGS):
        hidden = prediction.idle(known, hiding)
        best = min(best, (prediction.later(hidden), hidden, hiding), key=lambda one: one[0])
        if best[0] <= budget:
            break
    return best[1:]


def _around(steps: Sequence[EmittedNode], inner: frozenset[str]) -> set[str]:
    """All values that fused ops and training builds' own ops read and write: their shapes must be known."""
    fused = {name for step in steps for name, value in step.origin.items() if value in inner}
    touched = [({*step.reads, *step.node.output}, needs_training_build(step.node)) for step in steps]
    return set().union(*(names for names, training in touched if training or names & fused))


def original(graph: Graph, problem: Problem, session: Session = DEFAULT) -> Rewritten:
    """The model as it is, in the order of its file, for such a session."""
    steps = [EmittedNode(op.node, op, {name: name for name in op.writes}, op.reads) for op in graph.ops]
    prediction = Prediction(graph, problem, steps)
    promise = prediction.promise() if session.robust else prediction.strict_promise()
    return Rewritten(graph.model, promise, prediction, frozenset(), 0, 0, 0, 0)


def promise_as_is(graph: Graph, problem: Problem, session: Session = DEFAULT) -> Promise:
    """What `original` promises for such a session; where that runs the file as it stands, no model is needed."""
    if session.robust:
        return original(graph, problem, session).promise
    as_is = as_it_stands(problem)
    reads = edges([op.reads for op in graph.ops], [op.writes for op in graph.ops])
    outcome = simulate(as_is, lower(as_is, strict_order(reads, [op.op_type for op in graph.ops])))
    return Promise(outcome.peak, time=outcome.cost)


def _model(
    graph: Graph, steps: Sequence[EmittedNode], constants: Sequence[onnx.TensorProto], hidden: frozenset[str]
) -> onnx.ModelProto:
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
