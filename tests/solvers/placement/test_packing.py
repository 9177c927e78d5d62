"""Packing: against an overlap check of its own, all orders of placing on tiny cases, minimalloc's published ones."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers._loops import search_canonical
from solvers.clock import Clock
from solvers.placement.canonical import FITS, UNKNOWN
from solvers.placement.lives import Lives
from solvers.placement.packing import _Units, pack
from solvers.placement.placed import Placement

Row = tuple[int, int, int]  # start, end, size
DATA = Path(__file__).parents[2] / "data" / "packing"
lives = st.builds(
    lambda start, length, size: (start, start + length, size),
    st.integers(0, 12),
    st.integers(1, 8),
    st.integers(0, 9),
)


def check(lives: Lives, packed: Placement, alignment: int) -> None:
    """No two meet in time and address; the block is what it says; live bytes are never above the bound."""
    rows = [*zip(*(column.tolist() for column in lives), packed.allocations, strict=True)]
    for (start, end, size, (own, low)), (other_start, other_end, other, (_, high)) in combinations(rows, 2):
        assert own == size
        if start < other_end and other_start < end and size and other:
            assert low + size <= high or high + other <= low
    assert all(low >= 0 and low % alignment == 0 and low + size <= packed.block for *_, (size, low) in rows)
    assert lives.most_at_once() <= packed.bound <= packed.block


def least(rows: Sequence[Row]) -> int:
    """The optimum: some order of placing, each at the lowest free place, finds it."""
    return min(height(order) for order in permutations(rows))


def height(order: Sequence[Row]) -> int:
    placed: list[tuple[Row, int]] = []
    for start, end, size in order:
        near = [(low, low + other[2]) for other, low in placed if start < other[1] and other[0] < end]
        fits = (at for at in sorted({0, *(top for _, top in near)}) if all(at + size <= a or at >= b for a, b in near))
        placed.append(((start, end, size), next(fits)))
    return max(low + size for (_, _, size), low in placed)


@settings(max_examples=80, deadline=None)
@given(st.lists(lives, min_size=1, max_size=40), st.sampled_from([1, 4]))
def test_nothing_overlaps(lifetimes: list[Row], alignment: int) -> None:
    check(Lives.of(lifetimes), pack(Lives.of(lifetimes), alignment), alignment)


@settings(max_examples=100, deadline=None)
@given(st.lists(lives, min_size=1, max_size=6))
def test_tiny_cases_are_optimal_and_proved(lifetimes: list[Row]) -> None:
    packed = pack(Lives.of(lifetimes), 1)
    assert packed.block == packed.bound == least(lifetimes)


def test_live_bytes_that_cannot_be_reached() -> None:
    """Two ends of a band hold three of four, so that what comes in the middle finds its room in pieces."""
    lifetimes = [
        (0, 2, 3), (0, 4, 1), (1, 6, 2), (3, 8, 3), (5, 9, 1), (7, 9, 2)
    ]  # fmt: skip
    packed = pack(Lives.of(lifetimes), 1)
    assert packed.block == packed.bound == least(lifetimes)


def test_the_same_twice() -> None:
    lifetimes = published("F")
    assert pack(lifetimes, 1024, effort=1) == pack(lifetimes, 1024, effort=1)


def published(name: str) -> Lives:
    with (DATA / f"{name}.1048576.csv").open() as file:
        return Lives.of((int(r["lower"]), int(r["upper"]), int(r["size"])) for r in csv.DictReader(file))


@pytest.mark.parametrize("name", ["A", "C", "F", "G", "H"])
def test_published_cases_fit_their_capacity(name: str) -> None:
    lifetimes = published(name)
    packing = pack(lifetimes, 1024, room=1048576)
    check(lifetimes, packing, 1024)
    assert packing.block <= 1048576


def test_without_time_there_is_still_an_answer() -> None:
    lifetimes = published("C")
    packing = pack(lifetimes, 1024, Clock(0.0))
    check(lifetimes, packing, 1024)


def test_a_search_ends_when_it_is_told() -> None:
    units = _Units(published("F"), 1024, Clock())
    rank, offsets = np.arange(len(units.length)), np.zeros_like(units.length)
    assert search_canonical(units.case, rank, 1 << 40, 1 << 40, offsets, np.zeros(1, np.int64))[0] == FITS
    how, looked = search_canonical(units.case, rank, 1 << 40, 1 << 40, offsets, np.ones(1, np.int64))
    assert how == UNKNOWN
    assert looked <= len(rank)


def test_nothing_to_place() -> None:
    assert pack(Lives.of([]), 64) == Placement(0, 0, ())
    assert pack(Lives.of([(0, 3, 0)]), 64) == Placement(0, 0, ((0, 0),))
