"""Thousands of lifetimes in a low block: against an overlap check by time, and blocks cut up, whose height is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

import numpy as np
import pytest

from solvers._loops import place_by_ejection, place_from_bottom, search_canonical
from solvers.clock import limited
from solvers.orders.arrays import Ints
from solvers.placement.canonical import FITS, NEVER, sections
from solvers.placement.lives import Lives
from solvers.placement.packing import pack
from solvers.placement.placed import Placement

Piece = tuple[int, int, int, int]  # from one moment to another, from one address to another


def cut(pieces: int, seed: int) -> list[Piece]:
    """A block cut into so many pieces, the largest first, each in two across time or across addresses."""
    random = np.random.default_rng(seed)
    whole: list[tuple[int, Piece]] = [(0, (0, 20 * pieces, 0, 1 << 20))]
    while len(whole) < pieces:
        _, (start, end, low, high) = heappop(whole)
        if end - start > 1 and random.random() < 0.6:
            at = int(random.integers(start + 1, end))
            halves: list[Piece] = [(start, at, low, high), (at, end, low, high)]
        else:
            at = int(random.integers(low + 1, high))
            halves = [(start, end, low, at), (start, end, at, high)]
        for half in halves:
            heappush(whole, (-(half[1] - half[0]) * (half[3] - half[2]), half))
    random.shuffle(whole)
    return [piece for _, piece in whole]


def check(lives: Lives, packed: Placement) -> None:
    """At each moment at which one begins, those that live lie one above the other."""
    size, offsets = np.array(packed.allocations, np.int64).T
    assert offsets.min() >= 0
    assert (size == lives.size).all()
    for moment in np.unique(lives.start):
        live = np.flatnonzero((lives.start <= moment) & (lives.end > moment))
        live = live[np.argsort(offsets[live])]
        assert ((offsets + size)[live][:-1] <= offsets[live][1:]).all()


def placed(lives: Lives, offsets: Ints) -> Placement:
    return Placement(0, 0, tuple(zip(lives.size.tolist(), offsets.tolist(), strict=True)))


@pytest.mark.parametrize("seed", range(3))
def test_a_block_that_was_cut_up_is_put_together_lower_by_those_that_take_the_places_of_others(seed: int) -> None:
    lives = Lives.of((start, end, high - low) for start, end, low, high in cut(1500, seed))
    packed, whole = pack(lives, 1, effort=8), 1 << 20
    check(lives, packed)
    first = pack(lives, 1, effort=0).block
    assert whole <= packed.block < first
    assert packed.block - whole < 3 * (first - whole) / 4  # there is no gap anywhere in the whole one


def test_many_lifetimes_are_placed_the_same_each_time_within_a_limit_of_work() -> None:
    lives = Lives.of((start, end, 64 * (high - low)) for start, end, low, high in cut(2100, 7))
    found = pack(lives, clock=limited(moves=1_000_000), effort=1, room=64 << 20)
    assert found == pack(lives, clock=limited(moves=1_000_000), effort=1, room=64 << 20)
    assert found.bound <= found.block < pack(lives, effort=0).block
    check(lives, found)


def test_what_has_no_place_is_said() -> None:
    """Two that meet, of which one alone fits; the height is kept to all the same."""
    ones = np.ones(2, np.int64)
    weight, offsets = np.ones(2), np.array([-1, 0], np.int64)
    lives = Lives(0 * ones, ones, 3 * ones)
    left, work = place_by_ejection(lives, weight, np.ones(2), 4, offsets, 0, 1000, np.zeros(1, np.int64))
    assert (left, sorted(offsets.tolist())) == (1, [-1, 0]) or (left, sorted(offsets.tolist())) == (1, [-1, 1])
    assert work >= 1000
    assert weight.sum() > 2


def test_it_ends_when_it_is_told_to() -> None:
    ones = np.ones(2, np.int64)
    lives = Lives(0 * ones, ones, 3 * ones)
    left, work = place_by_ejection(lives, np.ones(2), np.ones(2), 4, -ones, 0, 1 << 60, np.ones(1, np.int64))
    assert (left, work) == (2, 0)


def can_fit(lives: Lives, height: int) -> bool:
    """Whether some order of placing, each at the lowest free place, keeps to the height."""
    rows, known = [*zip(*(column.tolist() for column in lives), strict=True)], set[frozenset[tuple[int, int]]]()

    def goes_on(placed: frozenset[tuple[int, int]]) -> bool:
        if placed in known:
            return False
        known.add(placed)
        waiting = {*range(len(rows))}.difference(item for item, _ in placed)
        lowest = ((item, _lowest(rows, placed, item)) for item in waiting)
        return not waiting or any(goes_on(placed | {one}) for one in lowest if one[1] + rows[one[0]][2] <= height)

    return goes_on(frozenset())


def _lowest(rows: Sequence[Sequence[int]], placed: Iterable[tuple[int, int]], item: int) -> int:
    start, end, size = rows[item]
    near = sorted((low, low + rows[one][2]) for one, low in placed if rows[one][0] < end and start < rows[one][1])
    floor = 0
    for low, top in near:
        if low >= floor + size:
            break
        floor = max(floor, top)
    return floor


def full(random: np.random.Generator, count: int) -> Lives:
    """Some lifetimes, and others of one moment each that fill what they leave of a block at their peak."""
    start, size = random.integers(0, 4, count), random.integers(1, 4, count)
    end = start + random.integers(1, 4, count)
    held = np.array([int(size[(start <= moment) & (end > moment)].sum()) for moment in range(int(end.max()))])
    gaps = np.flatnonzero(held < held.max())
    columns = (start, gaps), (end, gaps + 1), (size, held.max() - held[gaps])
    return Lives(*(np.concatenate(column) for column in columns))


def test_from_the_bottom_up_all_orders_are_searched() -> None:
    answers = set()
    for seed in range(30, 50):
        random = np.random.default_rng(seed)
        lives = full(random, 5)
        height, offsets = int(sections(lives).held.max()), np.zeros_like(lives.size)
        rank = random.permutation(len(offsets))
        how, _ = search_canonical(sections(lives), rank, height, 1 << 40, offsets, np.zeros(1, np.int64))
        assert (how == FITS) == can_fit(lives, height)
        if how == FITS:
            check(lives, placed(lives, offsets))
            assert lives.height(offsets) <= height
        answers.add(how)
    assert answers == {FITS, NEVER}


def test_from_the_bottom_up_each_lies_on_what_it_meets_and_the_lowest_comes_first() -> None:
    for seed in range(30):
        random = np.random.default_rng(seed)
        start, size, rank = random.integers(0, 30, 40), random.integers(1, 9, 40), random.permutation(40)
        lives = Lives(start, start + random.integers(1, 12, 40), size)
        offsets = np.zeros(40, np.int64)
        assert place_from_bottom(sections(lives), rank, offsets) >= 40
        check(lives, placed(lives, offsets))
        order = np.lexsort((rank, offsets))
        for done, item in enumerate(order):
            met = [other for other in order[:done] if start[other] < lives.end[item] and start[item] < lives.end[other]]
            assert offsets[item] == max((int(offsets[other] + size[other]) for other in met), default=0)


def test_what_a_training_step_holds_is_placed_in_what_is_live_at_once() -> None:
    """Layers whose activations wait for the way back, with temporaries beside them and small values between."""
    random = np.random.default_rng(0)
    layers, step = 300, 12
    end = 2 * layers * step
    kinds = random.integers(50_000, 200_000, 3)
    lifetimes = []
    for layer in range(layers):
        begun, read = layer * step, end - (layer + 1) * step
        lifetimes += [(begun + part, read + step - part, int(kinds[part])) for part in range(3)]
        for place in (begun, read):
            lifetimes += [(place + 3 + part, place + 6 + 2 * part, int(kinds[part] * (2 + part))) for part in range(3)]
            lifetimes += [(place + part, place + part + 9, 7 * part + 1) for part in range(3)]
    start, stop, size = Lives.of(lifetimes)
    lives = Lives(start, np.minimum(stop, end), size)
    packed = pack(lives, 1, effort=8)
    check(lives, packed)
    assert packed.block <= lives.most_at_once() * 1.001
