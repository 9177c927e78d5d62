"""A plan becomes a model that survives optimizers which merge, fuse and reorder, and an arena that keeps idle buffers.

Invariant: as for any rewriting (`remat_cli.rewrite`); what is added takes no memory where the file's own order is
followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx

from remat_cli.model.graph import Graph
from remat_cli.model.semantics import needs_training_build
from remat_cli.model.session_bytes import session_bytes
from remat_cli.planning.stock.anchors import add_anchors, can_anchor
from remat_cli.planning.stock.guards import Guards
from remat_cli.planning.stock.hidden_shapes import HiddenShapes
from remat_cli.planning.stock.pins import Pinning, find_pins
from remat_cli.planning.stock.prediction import WAITING_PARTS, StockPrediction
from remat_cli.rewrite import Rewritten, as_they_stand, model_of, plain_copies
from remat_cli.rewrite.copies import CopyNames, EmittedNode
from remat_cli.rewrite.predict import values_of
from solvers.plan import Plan
from solvers.problem import Problem

HIDINGS = 1 + len(WAITING_PARTS)


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


def rewrite_robustly(graph: Graph, problem: Problem, plan: Plan, manner: Manner = PLAINLY) -> Rewritten:
    """The model that runs `plan` with default options."""
    names = CopyNames(graph)
    plain, clones = plain_copies(graph, plan, names)
    made = _robust(graph, problem, plain, names, manner)
    sizes = [len(constant.raw_data) for constant in made.constants]
    prediction = StockPrediction(graph, problem, made.steps, sizes, manner.launch)
    itself = session_bytes(graph, plan.order(), len(made.steps) - len(plain))
    return Rewritten(
        model=model_of(graph, made.steps, made.constants, made.hidden | made.untold),
        promise=replace(prediction.promise(made.hidden), itself=itself, hiding=made.hiding),
        prediction=prediction,
        hidden=made.hidden,
        clones=clones,
        guards=made.guards,
        anchors=made.anchors,
        hidden_shapes=len(made.hidden),
        bare=manner.bare,
        shown=manner.shown,
    )


def original_by_default(graph: Graph, problem: Problem) -> Rewritten:
    """The model as it is, in the order of its file."""
    prediction = StockPrediction(graph, problem, as_they_stand(graph))
    return Rewritten(graph.model, prediction.promise(), prediction)


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


def _robust(graph: Graph, problem: Problem, plain: list[EmittedNode], names: CopyNames, manner: Manner) -> _Made:
    """For a session that merges, fuses, reorders and keeps idle buffers."""
    fused = (name for place, name in enumerate(values_of(graph)) if place in problem.inner)
    inner = manner.bare.union(graph.loose, fused)
    guards = Guards(graph, names, inner)
    guarded = guards.guarded(plain)
    anchored = _anchored(graph, guarded, names, inner)
    shown = {name for step in guarded for name, value in step.origin.items() if value in manner.shown}
    known = shown | _around(guarded, inner)
    hidden, hiding = _hide(StockPrediction(graph, problem, anchored.steps), known, manner.hiding, manner.budget)
    hidden_shapes = HiddenShapes(graph, names)
    if hidden:
        hidden_so = hidden_shapes.hiding(guarded, hidden)
        anchored = _anchored(graph, hidden_so, names, inner)
    added = len(guarded) - len(plain)
    return replace(
        anchored,
        constants=[*guards.constants.made.values(), *hidden_shapes.constants.made.values(), *anchored.constants],
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
    return _Made(made, [*pinning.constants.made.values(), *zero], untold=frozenset(pinning.made))


def _hide(prediction: StockPrediction, known: set[str], least: int, budget: int | None) -> tuple[set[str], int]:
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
