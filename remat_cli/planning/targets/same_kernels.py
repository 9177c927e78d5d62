"""Rewrites plans so that results cannot differ: in default sessions too the model runs the original's kernels.

Invariant: a model that is not `astray` makes each result, once onnxruntime has optimized it, by the very kernels by
which the optimized original makes it. If no output is `unpinned`, none comes in the place of an input that an op has
yet to read, in whatever order the nodes run. Ops that optimizers would treat differently are let be before the plan is
given up.
"""

from __future__ import annotations

import re
from dataclasses import replace

from profiles.running import CannotRun
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import Session
from remat_cli.planning.subjects.default_graph import kernels, shapes_of
from remat_cli.planning.subjects.subject import Subject
from remat_cli.rewrite import Manner, Rewritten, rewrite
from remat_cli.rewrite.kernels import Numbered, find_astray
from remat_cli.rewrite.pins import find_unpinned
from solvers.plan import Plan

LETTING_ROUNDS = 8  # rounds of leaving alone the values that optimizers treat differently
LETTING_STEPS = 3  # how many ops further values are left alone, where that is not enough


def rewrite_surely(
    subject: Subject, plan: Plan, session: Session, hiding: int = 0, first: Rewritten | None = None
) -> Rewritten:
    """The model of a plan, with the fewest changes in the way of optimizers that keep its kernels the original's.

    `first`: the plan's model with nothing let be, if it was made already.
    """
    graph, original = subject.graph, subject.behaviour.kernels
    assert graph is not None
    manner = Manner(subject.launch, hiding=hiding)
    found = first or rewrite(graph, subject.problem, plan, session, manner)
    if original is None:
        return found
    far = 0
    for number in range(LETTING_ROUNDS):
        wrong, unpinned = _faults(graph, original, found)
        found = replace(found, astray=wrong, unpinned=unpinned)
        if not wrong or number == LETTING_ROUNDS - 1:
            break
        far += wrong <= found.bare  # a change that is pushed along a path stops at values that lie further on
        around = _around(graph, wrong, LETTING_STEPS * far)
        if around <= found.bare:
            break
        found = rewrite(graph, subject.problem, plan, session, replace(manner, bare=found.bare | around))
    return found


def _around(graph: Graph, values: frozenset[str], steps: int) -> frozenset[str]:
    """The values, and those that are read or made by ops within so many steps of them."""
    for _ in range(steps):
        near = [op for op in graph.ops if not values.isdisjoint((*op.reads, *op.writes))]
        values = values.union(*((*op.reads, *op.writes) for op in near))
    return values


def _faults(graph: Graph, original: Numbered, found: Rewritten) -> tuple[frozenset[str], frozenset[str]]:
    """Values of the original around which the rewritten model runs other kernels, or where it does not load; and
    outputs that may come too early in the places of inputs."""
    origin = found.prediction.origin
    try:
        copies = {name: graph.values[value].shape for name, value in origin.items()}
        after = kernels(graph, found.model, original.shapes | shapes_of(graph) | copies)
    except CannotRun as refused:  # some fusions take a value away that another op still reads
        named = set(re.findall(r"'([^']+)'", str(refused)))
        return frozenset(origin.get(name, name) for name in named or {"?"}), frozenset()
    unpinned = find_unpinned(graph, found.model.graph) | find_unpinned(graph, after.graph)
    return frozenset(origin.get(name, name) for name in find_astray(original, after)), unpinned
