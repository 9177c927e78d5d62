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
from solvers.placement.largest import largest_first
from solvers.placement.lifetimes import ALIGNMENT, Lifetime, columns
from solvers.placement.packing import Packing, _Units, pack

DATA = Path(__file__).parents[2] / "data" / "packing"
lives = st.builds(
    lambda start, length, size: Lifetime(start, start + length, size),
    st.integers(0, 12),
    st.integers(1, 8),
    st.integers(0, 9),
)


def check(lifetimes: Sequence[Lifetime], packing: Packing, alignment: int) -> None:
    """No two meet in time and address; the height is what it says; live bytes are never above the bound."""
    ends = [offset + one.bytes for one, offset in zip(lifetimes, packing.offsets, strict=True)]
    for (one, a, b), (two, c, d) in combinations(zip(lifetimes, packing.offsets, ends, strict=True), 2):
        if one.start < two.end and two.start < one.end and one.bytes and two.bytes:
            assert b <= c or d <= a
    assert all(offset >= 0 and offset % alignment == 0 for offset in packing.offsets)
    assert max(ends) <= packing.height
    held = [sum(one.bytes for one in lifetimes if one.start <= at.start < one.end) for at in lifetimes]
    assert max(held) <= packing.bound <= packing.height


def least(lifetimes: Sequence[Lifetime]) -> int:
    """The optimum: some order of placing, each at the lowest free place, finds it."""
    return min(height(order) for order in permutations(lifetimes))


def height(order: Sequence[Lifetime]) -> int:
    placed: list[tuple[Lifetime, int]] = []
    for one in order:
        near = [(at, at + two.bytes) for two, at in placed if one.start < two.end and two.start < one.end]
        fits = (
            at for at in sorted({0, *(end for _, end in near)}) if all(at + one.bytes <= a or at >= b for a, b in near)
        )
        placed.append((one, next(fits)))
    return max(at + one.bytes for one, at in placed)


@settings(max_examples=80, deadline=None)
@given(st.lists(lives, min_size=1, max_size=40), st.sampled_from([1, 4]))
def test_nothing_overlaps(lifetimes: list[Lifetime], alignment: int) -> None:
    check(lifetimes, pack(lifetimes, alignment), alignment)


@settings(max_examples=80, deadline=None)
@given(st.lists(lives, min_size=1, max_size=40))
def test_the_placement_without_a_compiler_neither(lifetimes: list[Lifetime]) -> None:
    wide = [Lifetime(one.start, one.end, 100 * one.bytes) for one in lifetimes]
    found = largest_first(wide)
    assert [size for size, _ in found.allocations] == [one.bytes for one in wide]
    packing = Packing(tuple(offset for _, offset in found.allocations), found.block, found.bound)
    check(wide, packing, ALIGNMENT)
    assert found.bound <= pack(wide).bound


@settings(max_examples=100, deadline=None)
@given(st.lists(lives, min_size=1, max_size=6))
def test_tiny_cases_are_optimal_and_proved(lifetimes: list[Lifetime]) -> None:
    packing = pack(lifetimes, 1)
    assert packing.height == packing.bound == least(lifetimes)


def test_live_bytes_that_cannot_be_reached() -> None:
    """Two ends of a band hold three of four, so that what comes in the middle finds its room in pieces."""
    lifetimes = [
        Lifetime(0, 2, 3), Lifetime(0, 4, 1), Lifetime(1, 6, 2), Lifetime(3, 8, 3), Lifetime(5, 9, 1), Lifetime(7, 9, 2)
    ]  # fmt: skip
    packing = pack(lifetimes, 1)
    assert packing.height == packing.bound == least(lifetimes)


def test_the_same_twice() -> None:
    lifetimes = published("F")
    assert pack(lifetimes, 1024, effort=1) == pack(lifetimes, 1024, effort=1)


def published(name: str) -> list[Lifetime]:
    with (DATA / f"{name}.1048576.csv").open() as file:
        return [Lifetime(int(r["lower"]), int(r["upper"]), int(r["size"])) for r in csv.DictReader(file)]


@pytest.mark.parametrize("name", ["A", "C", "F", "G", "H"])
def test_published_cases_fit_their_capacity(name: str) -> None:
    lifetimes = published(name)
    packing = pack(lifetimes, 1024, room=1048576)
    check(lifetimes, packing, 1024)
    assert packing.height <= 1048576


def test_without_time_there_is_still_an_answer() -> None:
    lifetimes = published("C")
    packing = pack(lifetimes, 1024, Clock(0.0))
    check(lifetimes, packing, 1024)


def test_a_search_ends_when_it_is_told() -> None:
    units = _Units(columns(published("F")), 1024, Clock())
    rank, offsets = np.arange(len(units.length)), np.zeros_like(units.length)
    assert search_canonical(units.case, rank, 1 << 40, 1 << 40, offsets, np.zeros(1, np.int64))[0] == FITS
    how, looked = search_canonical(units.case, rank, 1 << 40, 1 << 40, offsets, np.ones(1, np.int64))
    assert how == UNKNOWN
    assert looked <= len(rank)


def test_nothing_to_place() -> None:
    assert pack([], 64) == Packing((), 0, 0)
    assert pack([Lifetime(0, 3, 0)], 64) == Packing((0,), 0, 0)
