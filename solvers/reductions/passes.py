"""Two passes over a problem: the outputs that the first one leaves out are put off to the second.

Outputs that are made early are held while later ones are made, and that may leave no room for those. With the first
pass's outputs held, the second begins anew.

Invariant: an order of the first pass and then one of the second compute every node, and what runs once in one of them.
They hold at no time more than the pass that holds more, but for blocks that views keep and copies that nobody reads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from solvers.problem import RESIDENT, Node, Problem


@dataclass(frozen=True, slots=True)
class Pass:
    """`nodes`: those of the whole problem, in the numbers of the pass."""

    problem: Problem
    nodes: tuple[int, ...]

    def expand(self, order: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.nodes[index] for index in order)


def in_two_passes(problem: Problem, put_off: float) -> tuple[Pass, Pass] | None:
    """`put_off`: of the bytes of outputs, those made first. None if all outputs or nodes are in one of them."""
    writer = problem.writers()
    outputs = sorted(set(problem.outputs), key=writer.__getitem__)
    early, room = 0, put_off * sum(problem.sizes[value] for value in outputs)
    while early < len(outputs) and room > 0:
        room -= problem.sizes[outputs[early]]
        early += 1
    now, later = outputs[early:], outputs[:early]
    if not now or not later:
        return None
    ahead = _needed(problem, writer, {writer[value] for value in now})
    lasting = {index for index in ahead if problem.nodes[index].once}
    behind = set(range(len(problem.nodes))) - ahead
    behind = _needed(problem, writer, behind | {writer[value] for value in later}, lasting)
    if not behind:
        return None
    read = {value for index in behind for value in problem.nodes[index].reads}
    held = {value for index in lasting for value in problem.nodes[index].writes}.intersection({*read, *later})
    first = _only(problem, ahead, held.union(now))
    second = _only(problem, behind, set(later) - held)
    bytes_held = sum(problem.sizes[value] for value in held.union(now))
    return first, replace(second, problem=replace(second.problem, resident=problem.resident + bytes_held))


def _needed(
    problem: Problem, writer: Sequence[int], wanted: Collection[int], lasting: Collection[int] = ()
) -> set[int]:
    """These nodes, and all that must run before them, but for those that ran and last."""
    found = set(wanted).difference(lasting)
    for index in range(len(problem.nodes) - 1, -1, -1):
        if index in found:
            found.update({writer[value] for value in problem.nodes[index].reads}.difference(lasting))
    return found


def _only(problem: Problem, nodes: Collection[int], outputs: Collection[int]) -> Pass:
    """The problem of these nodes; what they read of others is there."""
    kept = sorted(nodes)
    values = sorted(value for index in kept for value in problem.nodes[index].writes)
    number = {value: place for place, value in enumerate(values)}
    part = replace(
        problem,
        nodes=tuple(_renumbered(problem.nodes[index], number) for index in kept),
        sizes=tuple(problem.sizes[value] for value in values),
        outputs=tuple(sorted(number[value] for value in outputs)),
        optional=frozenset(number[value] for value in problem.optional if value in number),
        inner=frozenset(number[value] for value in problem.inner if value in number),
    )
    return Pass(part, tuple(kept))


def _renumbered(node: Node, number: dict[int, int]) -> Node:
    return replace(
        node,
        reads=tuple(number[value] for value in node.reads if value in number),
        writes=tuple(number[value] for value in node.writes),
        views=tuple((number[write], number.get(base, RESIDENT)) for write, base in node.views),
        overwrites=tuple((number[write], number[read]) for write, read in node.overwrites if read in number),
        updates=tuple((number[write], taken) for write, taken in node.updates),
    )
