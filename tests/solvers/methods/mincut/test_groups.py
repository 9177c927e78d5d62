"""Fusion groups: always runnable one after the other, and never leaving two that could still be one."""

from __future__ import annotations

from graphlib import TopologicalSorter
from random import Random

import pytest

from solvers.methods.mincut.groups import Groups, fused


def case(seed: int) -> tuple[list[list[int]], list[bool]]:
    random = Random(seed)
    count = random.randint(1, 14)
    sources = [sorted(random.sample(range(i), min(i, random.randint(0, 3)))) for i in range(count)]
    return sources, [random.random() < 0.7 for _ in range(count)]


def runnable(groups: Groups, sources: list[list[int]]) -> bool:
    of = {op: number for number, members in enumerate(groups) for op in members}
    above = {number: {of[s] for op in members for s in sources[op]} - {number} for number, members in enumerate(groups)}
    try:
        TopologicalSorter(above).prepare()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("seed", range(150))
def test_groups_can_run_one_after_the_other(seed: int) -> None:
    sources, fusible = case(seed)
    groups = fused(sources, lambda first, second: fusible[first] and fusible[second])
    assert sorted(op for members in groups for op in members) == list(range(len(sources)))
    assert runnable(groups, sources)
    assert all(len(members) == 1 or all(fusible[op] for op in members) for members in groups)


def test_as_pytorch_groups() -> None:
    """f3 of the tests of functorch's rematerialization, with the assignment stated there."""
    names = ["cos", "relu", "clone", "clone_1", "add", "add_1", "add_2", "clone_2", "relu_1", "add_3"]
    reads = [[], [0], [1], [0], [3, 2], [4, 0], [5, 1], [6], [7], [8, 6]]
    apart = {"clone", "clone_1", "clone_2"}
    groups = fused(reads, lambda first, second: not {names[first], names[second]} & apart)
    shared = [{names[op] for op in members} for members in groups if len(members) > 1]
    assert sorted(map(sorted, shared)) == [["add", "add_1", "add_2"], ["add_3", "relu_1"], ["cos", "relu"]]


@pytest.mark.parametrize("seed", range(60))
def test_a_chain_of_fusible_ops_is_one_group(seed: int) -> None:
    count = Random(seed).randint(1, 30)
    assert fused([[i - 1] if i else [] for i in range(count)], lambda *_: True) == [list(range(count))]


def test_what_something_else_runs_between_stays_apart() -> None:
    """0 -> 1 -> 2 and 0 -> 2, where 1 fuses with neither."""
    found = fused([[], [0], [0, 1]], lambda first, second: 1 not in (first, second))
    assert found == [[0], [1], [2]]
