"""Schedules the ops that the runtime fuses by default as one: they run together or not at all.

A fused kernel can give other bits than its ops one by one. So a copy of a value inside it (`Problem.inner`) must be for
one run of its readers, as in the original; otherwise a plan would change what is fused.

Invariant: `expand` runs the ops of a kernel one right after the other. The problem counts all that a kernel touches as
held from its first op to its last, which may be more than it really needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from solvers.problem import Kind, Node, Problem
from solvers.reductions.contraction import Contraction, numbered
from solvers.updates import following_readers

WEIGHTIEST = (Kind.COMPUTE, Kind.EPILOGUE, Kind.OPAQUE, Kind.CONCAT, Kind.REDUCTION, Kind.POINTWISE)


def with_whole_kernels(problem: Problem) -> Contraction:
    """One node for each kernel, standing where its last op stood."""
    ordered = following_readers(problem)  # an update of an input comes after all kernels that read its old value
    kernels = _in_order(ordered, _kernels(ordered))
    readers = problem.readers()
    inside = [_inside(problem, kernel, readers) for kernel in kernels]
    gone = set().union(*inside)
    values = [value for value in range(len(problem.sizes)) if value not in gone]
    nodes = tuple(_one(problem, *pair) for pair in zip(kernels, inside, strict=True))
    small = numbered(replace(problem, nodes=nodes, inner=frozenset()), values)
    last = {kernel[-1]: place for place, kernel in enumerate(kernels)}
    return Contraction(
        small,
        expand=lambda order: tuple(index for place in order for index in kernels[place]),
        shrink=lambda order: tuple(last[index] for index in order if index in last),
        node_of=lambda place: kernels[place][-1],
        value_of=values.__getitem__,
    )


def _kernels(problem: Problem) -> list[list[int]]:
    """The ops that inner values join into kernels; a kernel whose ops cannot run one right after the other is split
    again.

    A value that several kernels read, such as a common factor, joins none: any copy does for any of them.
    """
    leader = list(range(len(problem.nodes)))

    def find(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    writer, readers = problem.writers(), problem.readers()
    waiting = problem.inner.difference(problem.outputs)
    while tied := {value for value in waiting if len({find(reader) for reader in readers[value]}) == 1}:
        for value in sorted(tied):
            one, two = sorted((find(writer[value]), find(readers[value][0])))
            leader[two] = one
        waiting -= tied
    groups: dict[int, list[int]] = {}
    for index in range(len(problem.nodes)):
        groups.setdefault(find(index), []).append(index)
    convex = {leader: _convex(problem, kernel) for leader, kernel in groups.items()}
    apart = [index for leader, kernel in groups.items() if not convex[leader] for index in kernel]
    return [kernel for leader, kernel in groups.items() if convex[leader]] + [[index] for index in apart]


def _convex(problem: Problem, kernel: list[int]) -> bool:
    """Whether no op outside of the kernel both needs one of its ops and is needed by another."""
    if len(kernel) == 1:
        return True
    members = set(kernel)
    tainted: set[int] = set()  # values that other ops made from the kernel's values
    made: set[int] = set()
    for index in range(kernel[0], kernel[-1] + 1):
        node = problem.nodes[index]
        if index in members:
            if node.once or tainted.intersection(node.reads):
                return False
            made.update(node.writes)
        elif made.intersection(node.reads) or tainted.intersection(node.reads):
            tainted.update(node.writes)
    return True


def _in_order(problem: Problem, kernels: list[list[int]]) -> list[list[int]]:
    """An order in which the kernels can run: of those that are ready, the one whose last op stood first.

    If two kernels wait for each other, every op stays by itself.
    """
    kernel_of = {index: place for place, kernel in enumerate(kernels) for index in kernel}
    writer = problem.writers()
    before = {
        place: {kernel_of[writer[value]] for index in kernel for value in problem.nodes[index].reads} - {place}
        for place, kernel in enumerate(kernels)
    }
    waiting = TopologicalSorter(before)
    try:
        waiting.prepare()
    except CycleError:
        return [[index] for index in range(len(problem.nodes))]
    ready: list[tuple[int, int]] = []
    found = []
    while waiting.is_active():
        for place in waiting.get_ready():
            heappush(ready, (kernels[place][-1], place))
        _, place = heappop(ready)
        found.append(kernels[place])
        waiting.done(place)
    return found


def _inside(problem: Problem, kernel: Sequence[int], readers: list[list[int]]) -> set[int]:
    """Inner values that only the kernel itself reads."""
    own = problem.inner.intersection(value for index in kernel for value in problem.nodes[index].writes)
    found = {value for value in own if readers[value] and set(readers[value]) <= set(kernel)}
    return found.difference(problem.outputs)


def _one(problem: Problem, kernel: Sequence[int], inside: set[int]) -> Node:
    """The kernel as one node; the bytes of its inner values are its workspace."""
    nodes = [problem.nodes[index] for index in kernel]
    last = nodes[-1]
    if len(nodes) == 1:
        return last
    own = {value for node in nodes for value in node.writes}
    over = [(write, read) for write, read in last.overwrites if read not in own]
    taken = sum(problem.sizes[value] for value in inside)
    for write, read in last.overwrites:  # the result lies where an inner value was
        if read in inside and problem.sizes[write] == problem.sizes[read] and write not in problem.outputs:
            taken -= problem.sizes[write]
            break
    return Node(
        cost=sum(node.cost for node in nodes),
        reads=tuple(dict.fromkeys(v for node in nodes for v in node.reads if v not in own)),
        writes=tuple(v for node in nodes for v in node.writes if v not in inside),
        workspace=taken + max(node.workspace for node in nodes),
        views=tuple(pair for pair in last.views if pair[1] not in own),
        overwrites=tuple(over),
        backward=last.backward,
        kind=_kind(nodes),
        takes=tuple(sorted({pair for node in nodes for pair in node.takes})),
        updates=tuple(pair for node in nodes for pair in node.updates),
    )


def _kind(nodes: Sequence[Node]) -> Kind:
    """The kind of the kernel for its neighbours: compute-bound or opaque if any of its ops is."""
    kinds = {node.kind for node in nodes}
    if Kind.COMPUTE in kinds and nodes[-1].kind in (Kind.POINTWISE, Kind.REDUCTION):
        return Kind.EPILOGUE
    return next((kind for kind in WEIGHTIEST if kind in kinds), nodes[-1].kind)
