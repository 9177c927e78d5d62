"""The least cost of reversing a chain whose ops have one cost and one size, by counting: cuts in time give a weak
bound.

An op f(i) of a unit chain reads the result of f(i-1), and a turn reads the last of these values. Then they are read
again, the last first, each with the result before. So there is only one order of first computes. Let l states be
reversed, of which the first is always there, and let at most c of them be in memory, the first included. Then this many
forward runs are needed:

t(l, c) = r l - beta(c + 1, r - 1), beta(c, r) = binomial(c + r, c), r the least with l <= beta(c, r)

(J. Grimm, L. Pottier, N. Rostaing-Schmidt, "Optimal time and minimum space-time product for reversing a certain class
of programs", 1996; A. Griewank, A. Walther, Algorithm 799: Revolve, ACM TOMS 26, 2000.) While a value is read again,
three values are in memory that are no such state: it, the result before and the new one.

Invariant: the bound is None for whatever is not such a chain; otherwise no legal schedule costs less.
"""

from __future__ import annotations

from math import comb

from solvers.problem import Problem


def reversal_bound(problem: Problem, budget: int) -> int | None:
    """The least cost of every schedule within the budget."""
    if not is_unit_chain(problem):
        return None
    length = (len(problem.nodes) - 1) // 2
    states = (budget - problem.resident) // problem.sizes[0] - 2
    if states < 1:
        return None
    again = forward_runs(length + 1, states) - length
    return sum(node.cost for node in problem.nodes) + max(0, again) * problem.nodes[0].cost


def is_unit_chain(problem: Problem) -> bool:
    """Whether the nodes can first run in only one order, and all have one cost and one size."""
    nodes, half = problem.nodes, len(problem.nodes) // 2
    if len(nodes) % 2 == 0 or len(nodes) < 3 or problem.outputs != (len(nodes) - 1,) or problem.optional:
        return False
    alike = len({*problem.sizes}) == 1 and problem.sizes[0] > 0 and len({node.cost for node in nodes[:half]}) == 1
    plain = all(
        node.writes == (index,) and not (node.workspace or node.once or node.views or node.overwrites)
        for index, node in enumerate(nodes)
    )
    return alike and plain and all({*node.reads} == _reads(index, half) for index, node in enumerate(nodes))


def _reads(index: int, half: int) -> set[int]:
    if index <= half:
        return {index - 1} if index else set()
    return {index - 1, 2 * half - index}


def forward_runs(length: int, states: int) -> int:
    """t: how many forward runs reverse so many ops, the turn among them, with so many states."""
    repeats = 0
    while comb(states + repeats, states) < length:
        repeats += 1
    return repeats * length - comb(states + repeats, states + 1)
