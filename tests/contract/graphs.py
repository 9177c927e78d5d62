"""The table of graphs that every method must handle: small training steps of the shapes that networks have."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from solvers.problem import Node, Problem


def training_step(reads: Sequence[Sequence[int]], sizes: Sequence[int], costs: Sequence[int]) -> Problem:
    """Forward op i reads the results of `reads[i]`; its gradient its readers' gradients, its result and its reads."""
    count = len(reads)
    users = [[j for j in range(count) if i in reads[j]] for i in range(count)]
    nodes = [Node(costs[i], tuple(reads[i]), (i,)) for i in range(count)]
    gradient = {i: 2 * count - 1 - i for i in range(count)}
    for i in reversed(range(count)):
        seen = {*reads[i], i, *(gradient[j] for j in users[i])}
        nodes.append(Node(2 * costs[i], tuple(sorted(seen)), (gradient[i],), backward=True))
    return Problem(tuple(nodes), (*sizes, *reversed(sizes)), (gradient[0],))


def chain(count: int) -> Problem:
    return training_step([[i - 1] if i else [] for i in range(count)], [1] * count, [1] * count)


def random_step(seed: int, count: int = 5) -> Problem:
    random = Random(seed)
    reads = [sorted(random.sample(range(i), min(i, random.randint(1, 2)))) for i in range(count)]
    return training_step(reads, random.choices((1, 2, 3, 5), k=count), random.choices((1, 2, 4, 9), k=count))


def everything_at_once() -> Problem:
    """Two results from one op, workspace, a random op, an overwritten read, an output in the forward pass."""
    nodes = (
        Node(4, (), (0,)),
        Node(3, (0,), (1, 2), workspace=2),  # a mask beside the result
        Node(1, (1,), (3,), overwrites=((3, 1),)),
        Node(2, (3,), (4,), once=True),
        Node(5, (4,), (5,)),
        Node(1, (5,), (6,)),
        Node(6, (4, 5, 6), (7,), backward=True),
        Node(2, (3, 7), (8,), backward=True, overwrites=((8, 7),)),
        Node(3, (0, 2, 8), (9,), workspace=1, backward=True),
    )
    return Problem(nodes, (3, 2, 1, 2, 2, 3, 1, 2, 2, 3), (6, 9), resident=4, optional=frozenset({2}), unread_stay=True)


GRAPHS: dict[str, Problem] = {
    "chain": chain(6),
    "uneven chain": training_step([[], [0], [1], [2], [3]], [4, 1, 5, 2, 3], [3, 7, 1, 2, 9]),
    "residual": training_step([[], [0], [1], [0, 2], [3]], [2, 2, 2, 2, 1], [3, 5, 4, 1, 1]),
    "diamond": training_step([[], [0], [0], [1, 2], [3]], [2, 3, 1, 2, 1], [2, 4, 5, 1, 1]),
    "u-net": training_step([[], [0], [1], [0, 2], [3]], [4, 2, 1, 4, 1], [3, 3, 2, 5, 1]),
    "dense": training_step([[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]], [1, 2, 2, 1, 1], [2, 3, 3, 4, 1]),
    "transformer": training_step([[], [0], [0], [1, 2], [0, 3], [4]], [2, 2, 2, 4, 2, 1], [1, 6, 6, 8, 1, 3]),
    "random 1": random_step(1),
    "random 2": random_step(2),
    "everything": everything_at_once(),
}
