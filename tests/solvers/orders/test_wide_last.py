"""Orders in which what takes most room comes last: legal, each node once, wide ops and what leads from them at the
end."""

from __future__ import annotations

from random import Random

from solvers.orders.wide_last import orders_with_wide_last
from solvers.problem import Node, Problem
from solvers.schedule import evaluate
from tests.solvers.random_problems import random_problem

WIDE = 40  # bytes of the value that a wide op works in


def step_with_wide_gradients(layers: int) -> Problem:
    """A chain there and back; the gradient of each weight (sizes of 1) is made in wide memory, from values of 2."""
    nodes, sizes, outputs = [], [2] * (2 * layers), list[int]()
    nodes += [Node(10, (step - 1,) if step else (), (step,)) for step in range(layers)]
    for step in range(layers, 2 * layers):
        nodes.append(Node(10, (step - 1, 2 * layers - 1 - step), (step,)))
        sizes += [WIDE + step, 1]
        nodes.append(Node(1, (step,), (len(sizes) - 2,)))
        nodes.append(Node(1, (len(sizes) - 2,), (len(sizes) - 1,)))
        outputs.append(len(sizes) - 1)
    return Problem(tuple(nodes), tuple(sizes), tuple(outputs))


def test_the_widest_ops_and_what_leads_from_them_come_last() -> None:
    problem = step_with_wide_gradients(6)
    orders = list(orders_with_wide_last(problem, 60))
    wide = [index for index, node in enumerate(problem.nodes) if node.cost == 1]
    assert orders[0][-2:] == wide[-2:]
    assert set(orders[1][-5:]) == {*wide[-4:], wide[-2] - 1}  # with the gradient that is made for the last alone
    assert [sorted(order) for order in orders] == [list(range(len(problem.nodes)))] * len(orders)
    assert all(evaluate(problem, order)[1].cost == sum(node.cost for node in problem.nodes) for order in orders)


def test_nothing_is_put_off_where_nothing_is_wide() -> None:
    assert not list(orders_with_wide_last(step_with_wide_gradients(6), 1_000))


def test_orders_of_random_problems_can_run() -> None:
    random, met = Random(47), 0
    for _ in range(200):
        problem = random_problem(random, random.randint(4, 14))
        for order in orders_with_wide_last(problem, problem.resident + max(problem.sizes, default=1)):
            met += 1
            assert sorted(order) == list(range(len(problem.nodes)))
            evaluate(problem, order)
    assert met > 20
