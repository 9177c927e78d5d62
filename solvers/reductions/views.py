"""Smaller equivalent problems, each with its way back.

Invariant: `expand` turns any legal order of the smaller problem into a legal order of the original at the same peak,
at a cost higher by exactly `fixed_cost` when views are free; a bound for the smaller one, plus `fixed_cost`, is a bound
for the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from solvers.problem import RESIDENT, Node, Problem
from solvers.reductions.contraction import Contraction as Contraction
from solvers.reductions.contraction import after as after
from solvers.reductions.kernels import contract_fused


def contract(problem: Problem) -> Contraction:
    """All reductions, one after the other. The optimum is kept, among schedules that run fused ops together."""
    return after(contract_views(problem), contract_fused) if problem.inner else contract_views(problem)


def contract_views(problem: Problem) -> Contraction:
    """Let readers of a view read its base.

    A view occupies nothing and holds its base, so whoever needs the view later needs the base, and nothing else. On
    the way back each view is made again just before the first reader of each copy of its base. A view that is an
    output is kept: its last copy has memory of its own.
    """
    is_view = _free_views(problem)
    if not any(is_view):
        return Contraction(problem, tuple, tuple)
    base = list(range(len(problem.sizes)))  # value -> the value whose memory it lives in, or RESIDENT
    takes: dict[int, set[tuple[int, int]]] = {}  # value -> the inputs and weights it is a view of
    for node, view in zip(problem.nodes, is_view, strict=True):
        if view:
            for write, read in node.views:
                base[write] = read if read == RESIDENT else base[read]
                takes[write] = {*node.takes, *takes.get(read, ())}
    kept = [index for index, view in enumerate(is_view) if not view]
    renumber, sizes = _renumber(problem, kept)
    small = Problem(
        nodes=tuple(_rebase(problem.nodes[index], base, renumber, takes) for index in kept),
        sizes=tuple(sizes),
        outputs=tuple(renumber[value] for value in problem.outputs),
        resident=problem.resident,
        optional=frozenset(renumber[value] for value in problem.optional if value in renumber),
        unread_stay=problem.unread_stay,
        inner=frozenset(renumber[value] for value in problem.inner if value in renumber),
    )
    position = {index: place for place, index in enumerate(kept)}

    def shrink(order: Sequence[int]) -> tuple[int, ...]:
        return tuple(position[index] for index in order if index in position)

    def expand(order: Sequence[int]) -> tuple[int, ...]:
        return _with_views(problem, is_view, [kept[index] for index in order])

    fixed = sum(node.cost for node, view in zip(problem.nodes, is_view, strict=True) if view)
    return Contraction(small, expand, shrink, fixed, kept.__getitem__, list(renumber).__getitem__)


def _free_views(problem: Problem) -> list[bool]:
    """Nodes that only look at memory that is there. A view that nobody reads is an op like any other."""
    is_view = [_only_views(problem, node) for node in problem.nodes]
    wanted = _views_somebody_reads(problem, is_view)
    return [index in wanted for index in range(len(problem.nodes))]


def _only_views(problem: Problem, node: Node) -> bool:
    shared = {write for write, _ in node.views}
    return (
        bool(node.writes)
        and shared == set(node.writes)
        and set(node.reads) <= {read for _, read in node.views}
        and not node.workspace
        and not node.once
        and not shared.intersection(problem.outputs)
    )


def _renumber(problem: Problem, kept: list[int]) -> tuple[dict[int, int], list[int]]:
    values = sorted(value for index in kept for value in problem.nodes[index].writes)
    return {value: place for place, value in enumerate(values)}, [problem.sizes[value] for value in values]


def _rebase(node: Node, base: list[int], renumber: dict[int, int], takes: dict[int, set[tuple[int, int]]]) -> Node:
    """The node in the smaller problem's numbers, reading bases where it read views of them."""
    reads = [base[value] for value in node.reads]
    return replace(
        node,
        reads=tuple(dict.fromkeys(renumber[value] for value in reads if value != RESIDENT)),
        writes=tuple(renumber[value] for value in node.writes),
        views=tuple(
            (renumber[write], RESIDENT if read == RESIDENT or base[read] == RESIDENT else renumber[base[read]])
            for write, read in node.views
        ),
        overwrites=tuple(
            (renumber[write], renumber[base[read]])
            for write, read in node.overwrites
            if base[read] != RESIDENT and reads.count(base[read]) == 1  # read twice, it is never overwritten
        ),
        takes=tuple(sorted({*node.takes, *(pair for value in node.reads for pair in takes.get(value, ()))})),
    )


def _with_views(problem: Problem, is_view: list[bool], order: list[int]) -> tuple[int, ...]:
    """Put the views back: each just before the first reader of each copy of its base."""
    writer = problem.writers()
    views_on: dict[int, list[int]] = {}  # value -> views directly on it
    for index, node in enumerate(problem.nodes):
        if is_view[index]:
            for _, read in node.views:
                views_on.setdefault(read, []).append(index)
    fresh: set[int] = set()  # views made from the present copies of their bases
    result: list[int] = []

    def make(index: int) -> None:
        if index in fresh:
            return
        for value in problem.nodes[index].reads:
            if is_view[writer[value]]:
                make(writer[value])
        fresh.add(index)
        result.append(index)

    def spoil(index: int) -> None:
        for value in problem.nodes[index].writes:
            for view in views_on.get(value, ()):
                fresh.discard(view)
                spoil(view)

    for index in order:
        for value in problem.nodes[index].reads:
            if is_view[writer[value]]:
                make(writer[value])
        result.append(index)
        spoil(index)
    return tuple(result)


def _views_somebody_reads(problem: Problem, is_view: list[bool]) -> set[int]:
    writer = problem.writers()
    wanted: set[int] = set()
    for index in range(len(problem.nodes) - 1, -1, -1):
        if not is_view[index] or index in wanted:
            wanted.update(writer[value] for value in problem.nodes[index].reads if is_view[writer[value]])
    return wanted
