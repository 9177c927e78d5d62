"""The arena that grows, by hand: regions of one MiB and twice that and so on, none given back, none joined."""

from __future__ import annotations

import random

from solvers.placement.growing import grown
from solvers.placement.lives import Lives

KIB, MIB = 1 << 10, 1 << 20


def test_what_was_freed_is_used_again() -> None:
    assert grown(Lives.of([(0, 1, 600 * KIB), (1, 2, 600 * KIB)])) == 600 * KIB


def test_two_regions_do_not_join() -> None:
    """1 MiB, then 2: free both, and neither holds 2.5 MiB; nor does what comes next."""
    assert grown(Lives.of([(0, 2, MIB), (1, 2, 2 * MIB), (2, 3, 5 * MIB // 2)])) == MIB + 2 * MIB + 5 * MIB // 2


def test_a_chunk_less_than_twice_as_large_is_not_split() -> None:
    """600 KiB in a chunk of a whole MiB leaves no room for 400 KiB beside it."""
    assert grown(Lives.of([(0, 1, MIB), (1, 3, 600 * KIB), (2, 3, 400 * KIB)])) == MIB + 400 * KIB


def test_sizes_are_rounded_up() -> None:
    assert grown(Lives.of([(0, 1, 1)])) == 256
    assert grown(Lives.of([(0, 1, 0)])) == 0


def test_never_less_than_what_is_live() -> None:
    rng = random.Random(1)
    lives = []
    for start in range(300):
        lives.append((start, start + rng.randint(1, 40), rng.randint(1, 3 * MIB)))
    live = max(sum(size for first, last, size in lives if first <= now < last) for now in range(340))
    assert live <= grown(Lives.of(lives)) <= 4 * live
