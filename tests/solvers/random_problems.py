<<<<<<< HEAD
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
=======
"""Random problems with everything the runtime does: shared memory, several outputs, effects, unread copies."""

from __future__ import annotations

import random

from solvers.problem import RESIDENT, Node, Problem


def random_problem(seed: int, count: int = 6, views: bool = True, plain: bool = False) -> Problem:
    """A small graph; `plain` keeps to one write a node and nothing shared, as the papers do."""
    rng = random.Random(seed)
    sizes: list[int] = []
    nodes: list[Node] = []
    optional: set[int] = set()
    for _ in range(count):
        pool = list(range(len(sizes)))
        reads = tuple(sorted(rng.sample(pool, min(len(pool), rng.randint(0, 3)))))
        if views and not plain and reads and rng.random() < 0.2:
            source = rng.choice([reads[0], RESIDENT])
            write = len(sizes)
            sizes.append(sizes[reads[0]])
            nodes.append(Node(0, () if source == RESIDENT else (source,), (write,), views=((write, source),)))
            continue
        writes = []
        for _ in range(1 if plain else rng.choice([1, 1, 1, 2])):
            writes.append(len(sizes))
            sizes.append(rng.randint(0, 4))
        overwrites: tuple[tuple[int, int], ...] = ()
        if not plain and reads and rng.random() < 0.4:
            sizes[writes[0]] = sizes[reads[0]]
            overwrites = ((writes[0], reads[0]),)
        if not plain and len(writes) == 2 and rng.random() < 0.5:
            optional.add(writes[1])
        workspace = 0 if plain else rng.choice([0, 0, 1, 3])
        once = not plain and rng.random() < 0.1
        nodes.append(Node(rng.randint(1, 9), reads, tuple(writes), workspace, once, overwrites=overwrites))
    outputs = tuple(sorted(rng.sample(range(len(sizes)), min(len(sizes), rng.randint(1, 2)))))
    resident = 0 if plain else rng.randint(0, 3)
    unread_stay = not plain and rng.random() < 0.5
    return Problem(tuple(nodes), tuple(sizes), outputs, resident, frozenset(optional), unread_stay)


def random_order(problem: Problem, seed: int, repeats: int = 5) -> tuple[int, ...]:
    """A legal order: every node once as given, and some computed again."""
    rng = random.Random(seed)
    order: list[int] = []
    for index in range(len(problem.nodes)):
        order.append(index)
        if rng.random() < 0.5 and repeats:
            again = rng.randint(0, index)
            if not problem.nodes[again].once:
                order.append(again)
                repeats -= 1
    return tuple(order)
>>>>>>> main
