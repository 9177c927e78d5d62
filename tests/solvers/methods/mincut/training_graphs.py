"""Random training steps with ops of all kinds, random ones among them."""

from __future__ import annotations

from random import Random

from solvers.problem import Kind, Node, Problem

KINDS = (Kind.POINTWISE, Kind.POINTWISE, Kind.POINTWISE, Kind.REDUCTION, Kind.COMPUTE, Kind.OPAQUE, Kind.CONCAT)


def random_training(seed: int, count: int = 8, once: float = 0.1) -> Problem:
    """Each gradient reads its readers' gradients and some of what its op read and wrote."""
    random = Random(seed)
    reads = [sorted(random.sample(range(max(0, i - 4), i), min(i, random.randint(1, 2)))) for i in range(count)]
    users = [[j for j in range(count) if i in reads[j]] for i in range(count)]
    nodes = []
    for i in range(count):
        takes = ((i, random.randint(1, 9)),) if not i or random.random() < 0.3 else ()
        random_op = random.random() < once
        nodes.append(
            Node(random.randint(1, 20), tuple(reads[i]), (i,), 0, random_op, kind=random.choice(KINDS), takes=takes)
        )
    gradient = {i: 2 * count - 1 - i for i in range(count)}
    for i in reversed(range(count)):
        seen = {v for v in (*reads[i], i) if random.random() < 0.7} | {gradient[j] for j in users[i]}
        kind = random.choice(KINDS)
        nodes.append(Node(random.randint(1, 20), tuple(sorted(seen)), (gradient[i],), backward=True, kind=kind))
    sizes = [random.randint(1, 30) for _ in range(2 * count)]
    return Problem(tuple(nodes), tuple(sizes), (gradient[0],), resident=random.randint(0, 5))
