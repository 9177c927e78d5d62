"""Rewrites plans so that results cannot differ: in default sessions too the model runs the original's kernels.

Invariant: a model that is not `astray` makes each result, once onnxruntime has optimized it, by the very kernels by
which the optimized original makes it. If no output is `unpinned`, none comes in the place of an input that an op has
yet to read, in whatever order the nodes run. Ops that optimizers would treat differently are let be before the plan is
given up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from profiles.running import CannotRun
from remat_cli.model.graph import Graph
from remat_cli.planning.stock.as_run import foretell
from remat_cli.planning.stock.graph import kernels, shapes_of
from remat_cli.planning.stock.numbering import Numbered, find_astray
from remat_cli.planning.stock.pins import find_unpinned
from remat_cli.planning.stock.rewriting import Manner, rewrite_robustly
from remat_cli.planning.subjects.subject import Subject
from remat_cli.rewrite import Rewritten
from solvers.plan import Plan

LETTING_ROUNDS = 8  # rounds of leaving alone the values that optimizers treat differently
LETTING_STEPS = 3  # how many ops further values are left alone, where that is not enough


def rewrite_surely(subject: Subject, plan: Plan, hiding: int = 0, first: Rewritten | None = None) -> Rewritten:
    """The model of a plan, with the fewest changes in the way of optimizers that keep its kernels the original's.

    `first`: the plan's model with nothing let be, if it was made already.
    """
    graph, original = subject.graph, subject.behaviour.kernels
    assert graph is not None
    assert original is None or isinstance(original, Numbered)
    manner = Manner(subject.launch, hiding=hiding)
    found = first or rewrite_robustly(graph, subject.problem, plan, manner)
    if original is None:
        return found
    far = 0
    for number in range(LETTING_ROUNDS):
        wrong, unpinned, after = _faults(graph, original, found)
        found = replace(found, astray=wrong, unpinned=unpinned)
        if not wrong or number == LETTING_ROUNDS - 1:
            break
        far += wrong <= manner.bare  # a change that is pushed along a path stops at values that lie further on
        less = _letting_be(manner, _around(graph, wrong, LETTING_STEPS * far))
        if less == manner:
            break
        manner = less
        found = rewrite_robustly(graph, subject.problem, plan, manner)
    unseen = subject.behaviour.peaks is None and found.prediction.fuses  # a model that is run tells what it holds
    if not unseen or wrong or after is None:
        return found
    made = foretell(graph, subject.problem, after, found.prediction.origin)
    return found if made is None else replace(found, as_run=made[0], hidden=made[1])


def _letting_be(manner: Manner, wrong: frozenset[str]) -> Manner:
    """With fewer changes around these values. A hidden shape often misleads optimizers, and to show it costs least."""
    if not wrong <= manner.shown:
        return replace(manner, shown=manner.shown | wrong)
    return replace(manner, bare=manner.bare | wrong)


def _around(graph: Graph, values: frozenset[str], steps: int) -> frozenset[str]:
    """The values, and those that are read or made by ops within so many steps of them."""
    for _ in range(steps):
        near = [op for op in graph.ops if not values.isdisjoint((*op.reads, *op.writes))]
        values = values.union(*((*op.reads, *op.writes) for op in near))
    return values


def _faults(
    graph: Graph, original: Numbered, found: Rewritten
) -> tuple[frozenset[str], frozenset[str], Numbered | None]:
    """Values of the original around which the rewritten model runs other kernels, or where it does not load; outputs
    that may come too early in the places of inputs; and what a session makes of the model."""
    origin = found.prediction.origin
    try:
        copies = {name: graph.values[value].shape for name, value in origin.items()}
        after = kernels(graph, found.model, original.shapes | shapes_of(graph) | copies)
    except CannotRun as refused:  # some fusions take a value away that another op still reads
        named = set(re.findall(r"'([^']+)'", str(refused)))
        return frozenset(origin.get(name, name) for name in named or {"?"}), frozenset(), None
    unpinned = find_unpinned(graph, found.model.graph) | find_unpinned(graph, after.graph)
    astray = frozenset(origin.get(name, name) for name in find_astray(original, after))
    return astray | _gone(original, after, origin, astray), unpinned, after


def _gone(original: Numbered, after: Numbered, origin: Mapping[str, str], astray: frozenset[str]) -> frozenset[str]:
    """What the original's kernels read to make these values, and the other graph's do not."""
    reads = {name: {origin.get(one, one) for one in node.input} for node in after.graph.node for name in node.output}
    makers = [(name, node) for node in original.graph.node for name in astray.intersection(node.output)]
    return frozenset(one for name, node in makers if name in reads for one in node.input if one not in reads[name])
