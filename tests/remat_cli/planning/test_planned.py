"""The strict session's block: what an order is known to fit in, its model fits in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from remat_cli.model.proved import Promise
from remat_cli.planning.targets.planned import PlannedTarget
from solvers.placement.memory import PlannedBlock
from solvers.placement.packing import SURE
from solvers.problem import Node, Problem


def crowded(seed: int, count: int = 200) -> Problem:
    """One value an op, most of them for a short time."""
    random = np.random.default_rng(seed)
    read: list[list[int]] = [[] for _ in range(count)]
    for value in range(count):
        long = random.random() > 0.7
        read[min(count - 1, value + int(random.integers(*((20, count // 2) if long else (1, 8)))))].append(value)
    sizes = tuple(int(size) * 64 for size in random.integers(1, 40, count))
    nodes = tuple(Node(1, tuple(v for v in values if v < op), (op,)) for op, values in enumerate(read))
    return Problem(nodes, sizes, ())


def test_a_model_fits_where_its_order_does() -> None:
    """A short search for places would lose what a long one found."""
    lost = 0
    for seed in range(12):
        problem = crowded(seed)
        order = range(len(problem.nodes))
        room = PlannedBlock(problem, 0).height(order, effort=2 * SURE)
        memory = PlannedBlock(problem, room)
        lost += memory.height(order, effort=0) > room >= memory.height(order, effort=SURE)
        strict = SimpleNamespace(order=lambda order=order: tuple(order))
        prediction = SimpleNamespace(problem=problem, strict=strict)
        model: Any = SimpleNamespace(prediction=prediction, promise=Promise(strict=0))
        placement = PlannedTarget().footprint(model, 0, room).placement
        assert placement is not None
        assert (placement.block <= room) == (memory.height(order, effort=SURE) <= room)
    assert lost
