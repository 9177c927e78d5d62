"""Finds the last size for which a condition holds, with few questions, because each question is expensive.

Invariant: the condition holds for every size below one for which it holds.
"""

from __future__ import annotations

from collections.abc import Callable

LARGEST_SIZE = 2**30  # no size is larger
HALVING_QUESTIONS = 3  # after this many questions the middle is asked, however straight the line looks


def last(holds: Callable[[int], bool], guess: int) -> int:
    """The last size, from 1 on, for which the condition holds; 0 where it holds for none. `guess`: a size near the
    answer."""
    step, low, high = 1, 0, LARGEST_SIZE
    at = guess
    while True:  # The interval grows outwards from the guess until it contains the answer.
        if holds(at):
            low, at = at, at + step
            if at >= LARGEST_SIZE:
                return low
        else:
            high, at = at, max(1, at - step)
        step *= 2
        if (low and high < LARGEST_SIZE) or high == 1:
            break
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def last_within(taken: Callable[[int], int | None], room: int) -> int:
    """The last size, from 1 on, that takes no more than the room; 0 where even size 1 takes more. `taken` answers None
    for a size that takes more than can be measured.

    The bytes taken grow about linearly, or piecewise linearly. So the next size to ask is where the line through the
    neighbouring sizes meets the room.
    """
    known: dict[int, int] = {}
    low, high, at, turn = 0, LARGEST_SIZE, 1, 0
    while True:
        value = taken(at)
        if value is not None:
            known[at] = value
        low, high = (at, high) if value is not None and value <= room else (low, at)
        if high - low <= 1:
            return low
        turn += high < LARGEST_SIZE
        wanted = _meeting(known, low, high, room) if turn % HALVING_QUESTIONS else (low + high) // 2
        at = min(max(wanted, low + 1), high - 1)


def _meeting(known: dict[int, int], low: int, high: int, room: int) -> int:
    """Where the line through `low` and its neighbour above, or else below, meets the room."""
    other = high if high in known else max((size for size in known if size < low), default=None)
    if other is None:
        return 2 * low
    rise = (known[other] - known[low]) // (other - low)
    return low + (room - known[low]) // rise if rise > 0 else 2 * low
