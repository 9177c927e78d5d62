"""Maximum flow against the least cut over all subsets of the vertices, in Python's integers."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from solvers.methods.mincut.flow import INFINITE, minimum_cut

Arc = tuple[int, int, int]


def least(count: int, arcs: list[Arc]) -> tuple[int, list[bool]]:
    """Between vertex 0 and the last; of the least cuts, the one with most vertices on the source's side."""
    best: tuple[int, int, list[bool]] | None = None
    for middle in product((False, True), repeat=count - 2):
        near = [True, *middle, False]
        value = sum(capacity for tail, head, capacity in arcs if near[tail] and not near[head])
        if best is None or (value, -sum(near)) < best[:2]:
            best = (value, -sum(near), near)
    assert best is not None
    return best[0], best[2]


def random_arcs(random: Random, count: int, largest: int) -> list[Arc]:
    arcs = []
    for _ in range(random.randint(count, 3 * count)):
        tail, head = random.randrange(count), random.randrange(count)
        infinite = random.random() < 0.1 and (tail, head) != (0, count - 1)
        arcs.append((tail, head, INFINITE if infinite else random.randint(0, largest)))
    return arcs


@pytest.mark.parametrize("largest", [3, 1 << 44])
@pytest.mark.parametrize("seed", range(60))
def test_least_of_all_cuts(seed: int, largest: int) -> None:
    random = Random(seed)
    count = random.randint(2, 9)
    arcs = random_arcs(random, count, largest)
    found = minimum_cut(count, arcs, 0, count - 1)
    value, near = least(count, arcs)
    if value >= INFINITE:
        assert found.value >= INFINITE
        return
    assert found.value == value
    assert found.near.tolist() == near


def test_nothing_is_rounded() -> None:
    """Doubles cannot tell these two apart."""
    large = (1 << 53) + 1
    assert minimum_cut(3, [(0, 1, large), (1, 2, large + 1)], 0, 2).value == large
