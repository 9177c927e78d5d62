"""Random problems with views among everything else the runtime does, for what contracts them."""

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
