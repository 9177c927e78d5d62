"""Small random problems with everything in them that a Problem can say."""

from __future__ import annotations

from random import Random

from solvers.problem import Node, Problem


def random_problem(random: Random, count: int, *, plain: bool = False) -> Problem:
    """`plain`: one write for each node and no effects, as in the papers."""
    nodes: list[Node] = []
    sizes: list[int] = []
    for _ in range(count):
        reads = _some(random, len(sizes), random.choice((1, 1, 1, 2, 2, 3)))
        many = 1 if plain else random.choice((0, 1, 1, 1, 1, 1, 2))
        writes = tuple(range(len(sizes), len(sizes) + many))
        sizes += [random.choice((0, 1, 2, 3, 4, 6)) if not plain else random.randint(1, 4) for _ in writes]
        overwrites = tuple((write, read) for write in writes for read in reads if not plain and random.random() < 0.4)
        for write, read in overwrites:
            if random.random() < 0.7:
                sizes[write] = sizes[read]
        nodes.append(
            Node(
                cost=random.choice((0, 1, 2, 3, 5)) if not plain else random.randint(1, 5),
                reads=reads,
                writes=writes,
                workspace=0 if plain or random.random() < 0.7 else random.randint(1, 3),
                once=not plain and random.random() < 0.1,
                overwrites=overwrites,
                backward=False,
            )
        )
    values = range(len(sizes))
    read = {value for node in nodes for value in node.reads}
    outputs = [value for value in values if (value not in read and random.random() < 0.5) or random.random() < 0.1]
    return Problem(
        nodes=tuple(nodes),
        sizes=tuple(sizes),
        outputs=tuple(outputs),
        resident=0 if plain else random.choice((0, 0, 5)),
        optional=frozenset() if plain else frozenset(value for value in values if random.random() < 0.15),
        unread_stay=not plain and random.random() < 0.4,
    )


def random_order(random: Random, problem: Problem, extra: int) -> tuple[int, ...]:
    """A legal order: each node once as given, and some again wherever they may run."""
    order = list(range(len(problem.nodes)))
    repeatable = [index for index, node in enumerate(problem.nodes) if not node.once]
    for _ in range(extra if repeatable else 0):
        index = random.choice(repeatable)
        first = order.index(index)
        order.insert(random.randint(first + 1, len(order)), index)
    return tuple(order)


def _some(random: Random, count: int, many: int) -> tuple[int, ...]:
    recent = range(max(0, count - 4), count)
    return tuple(sorted({random.choice(recent) for _ in range(many)})) if count else ()
