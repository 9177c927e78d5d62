"""Smaller equivalent problems, each with its way back.

Invariant: `expand` turns any legal order of the smaller problem into a legal order of the original at the same peak,
at a cost higher by exactly `fixed_cost` when views are free; a bound for the smaller one, plus `fixed_cost`, is a bound
for the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from solvers.orders.blocks import Blocks
from solvers.problem import RESIDENT, Node, Problem
from solvers.reductions.contraction import Contraction as Contraction
from solvers.reductions.contraction import after as after
from solvers.reductions.contraction import numbered
from solvers.reductions.kernels import with_whole_kernels

_NOTHING = 1e-4  # share of the cost of everything; an op that costs no more is recomputed for free


def reduced(problem: Problem) -> Contraction:
    """All reductions, one after the other. The optimum is kept, among schedules that run fused ops together."""
    return after(without_views(problem), with_whole_kernels) if problem.inner else without_views(problem)


def without_views(problem: Problem) -> Contraction:
    """Let readers of a view read its base.

    A view lives in its base's block, so whoever needs the view later needs the base, and nothing else: where a schedule
    holds a view of an older copy while the base is made again, the newer copy does as well. On the way back each view
    is made again just before the first reader of each copy of its base. Kept as ops like any other are
    - a view that is an output, whose last copy has memory of its own;
    - views where copies that nobody reads stay: making a view is to read;
    - views of one base, two of which one node overwrites: it might, of two copies;
    - views that cost something, for they may have to be made more than once;
    - views made with the help of an input that is updated: they cannot be made later.
    """
    is_view = _free_views(problem)
    if not any(is_view):
        return Contraction(problem, tuple, tuple)
    base, takes = _bases(problem, is_view)
    kept = [index for index, view in enumerate(is_view) if not view]
    values = sorted(value for index in kept for value in problem.nodes[index].writes)
    nodes = tuple(_rebase(problem.nodes[index], base, takes, problem.sizes) for index in kept)
    small = numbered(replace(problem, nodes=nodes), values)
    position = {index: place for place, index in enumerate(kept)}

    def shrink(order: Sequence[int]) -> tuple[int, ...]:
        return tuple(position[index] for index in order if index in position)

    def expand(order: Sequence[int]) -> tuple[int, ...]:
        return _with_views(problem, is_view, [kept[index] for index in order])

    fixed = sum(node.cost for node, view in zip(problem.nodes, is_view, strict=True) if view)
    return Contraction(small, expand, shrink, fixed, kept.__getitem__, values.__getitem__)


def _bases(problem: Problem, is_view: Sequence[bool]) -> tuple[list[int], dict[int, set[tuple[int, int]]]]:
    """For each value the one whose memory it lives in, or RESIDENT; and the inputs and weights that it is a view of."""
    base = list(range(len(problem.sizes)))
    takes: dict[int, set[tuple[int, int]]] = {}
    for node, view in zip(problem.nodes, is_view, strict=True):
        if view:
            for write in node.writes:
                read = node.base(write)
                assert read is not None
                base[write] = read if read == RESIDENT else base[read]
                takes[write] = {*node.takes, *takes.get(read, ())}
    return base, takes


def _free_views(problem: Problem) -> list[bool]:
    """Whether each node only views memory that is there. A view that nobody reads is treated as an op like any
    other."""
    if problem.unread_stay:
        return [False] * len(problem.nodes)
    dear = sum(node.cost for node in problem.nodes) * _NOTHING
    replaced = {number for node in problem.nodes for _, number in node.updates}
    is_view = [
        _only_views(problem, node) and node.cost <= dear and not _reads_besides(node, replaced)
        for node in problem.nodes
    ]
    for index in _overwritten_twice(problem):
        is_view[index] = False
    wanted = _views_somebody_reads(problem, is_view)
    return [index in wanted for index in range(len(problem.nodes))]


def _only_views(problem: Problem, node: Node) -> bool:
    bases = {node.base(write) for write in node.writes}
    return (
        len(bases) == 1  # remaking one of several results would need them all
        and None not in bases
        and bases.issuperset(node.reads)
        and not node.workspace
        and not node.once
        and not set(node.writes).intersection(problem.outputs)
    )


def _reads_besides(node: Node, replaced: set[int]) -> bool:
    """Whether making the view reads an updated input in whose memory it does not lie."""
    resident = any(node.base(write) == RESIDENT for write in node.writes)
    return not resident and not replaced.isdisjoint(number for number, _ in node.takes)


def _overwritten_twice(problem: Problem) -> set[int]:
    """The nodes that make views of one base of which a single node may overwrite two."""
    blocks, writer = Blocks(problem), problem.writers()
    found: set[int] = set()
    for node in problem.nodes:
        taken = {read for write in node.writes for read in node.may_overwrite(write, problem.sizes)}
        roots = [blocks.root[read] for read in taken]
        for read in taken:
            if roots.count(blocks.root[read]) > 1:
                found.update(writer[value] for value in blocks.chain(read))
    return found


def _rebase(node: Node, base: list[int], takes: dict[int, set[tuple[int, int]]], sizes: Sequence[int]) -> Node:
    """The node reading bases where it read views of them."""
    reads = [base[value] for value in dict.fromkeys(node.reads)]
    return replace(
        node,
        reads=tuple(dict.fromkeys(value for value in reads if value != RESIDENT)),
        views=tuple((write, RESIDENT if read == RESIDENT else base[read]) for write, read in node.views),
        overwrites=tuple(
            (write, base[read])
            for write in node.writes
            for read in node.may_overwrite(write, sizes)
            # a value that is read twice is never overwritten
            if base[read] != RESIDENT and reads.count(base[read]) == 1
        ),
        takes=tuple(sorted({*node.takes, *(pair for value in node.reads for pair in takes.get(value, ()))})),
    )


def _with_views(problem: Problem, is_view: list[bool], order: list[int]) -> tuple[int, ...]:
    """Put the views back: each just before the first reader of each copy of its base."""
    writer = problem.writers()
    views_on: dict[int, list[int]] = {}  # value -> the views directly on it
    for index, node in enumerate(problem.nodes):
        for write in node.writes if is_view[index] else ():
            base = node.base(write)
            if base is not None:
                views_on.setdefault(base, []).append(index)
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
