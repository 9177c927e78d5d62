"""The answer of a reduction: the smaller problem in numbers of its own, and the way back.

Invariant: `expand` of an order that is legal for the smaller problem is legal for the original.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from solvers.faults import sound
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class Contraction:
    problem: Problem
    expand: Callable[[Sequence[int]], tuple[int, ...]]
    shrink: Callable[[Sequence[int]], tuple[int, ...]]
    fixed_cost: int = 0
    # maps a node of the smaller problem to its node in the original; `value_of` does so for values
    node_of: Callable[[int], int] = int
    value_of: Callable[[int], int] = int


def numbered(problem: Problem, values: Sequence[int]) -> Problem:
    """The problem of these values alone, which get the numbers 0, 1, ...; its nodes know no others."""
    number = {value: place for place, value in enumerate(values)}

    def pairs(given: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        return tuple((number[write], number.get(read, read)) for write, read in given)  # RESIDENT has no other number

    nodes = tuple(
        replace(
            node,
            reads=tuple(number[value] for value in node.reads),
            writes=tuple(number[value] for value in node.writes),
            views=pairs(node.views),
            overwrites=pairs(node.overwrites),
            updates=tuple((number[write], place) for write, place in node.updates),
        )
        for node in problem.nodes
    )
    return replace(
        problem,
        nodes=nodes,
        sizes=tuple(problem.sizes[value] for value in values),
        outputs=tuple(number[value] for value in problem.outputs),
        optional=frozenset(number[value] for value in problem.optional if value in number),
        inner=frozenset(number[value] for value in problem.inner if value in number),
    )


def after(first: Contraction, then: Callable[[Problem], Contraction]) -> Contraction:
    """One reduction after another, as a single one."""
    second = then(sound(first.problem, "a reduction"))
    return Contraction(
        second.problem,
        expand=lambda order: first.expand(second.expand(order)),
        shrink=lambda order: second.shrink(first.shrink(order)),
        fixed_cost=first.fixed_cost + second.fixed_cost,
        node_of=lambda index: first.node_of(second.node_of(index)),
        value_of=lambda value: first.value_of(second.value_of(value)),
    )
