"""The last size for which something holds: found, with few questions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remat_cli.actions.size_hunt import LARGEST_SIZE, last, last_within


@given(st.integers(0, 300), st.integers(1, 300))
def test_the_last_size_for_which_something_holds(end: int, guess: int) -> None:
    tried: list[int] = []

    def holds(size: int) -> bool:
        tried.append(size)
        return size <= end

    assert last(holds, guess) == end
    assert len(tried) <= 4 + 2 * max(1, abs(end - guess)).bit_length()


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)), min_size=1, max_size=4),
    st.integers(1, 10**9),
    st.integers(1, 10**6),
)
def test_the_last_size_that_takes_no_more_than_there_is(lines: list[tuple[int, int]], room: int, most: int) -> None:
    tried: list[int] = []

    def taken(size: int) -> int | None:
        tried.append(size)
        return max(held + growth * size for held, growth in lines) if size <= most else None

    def fits(size: int) -> bool:
        return size <= most and all(held + growth * size <= room for held, growth in lines)

    found = last_within(taken, room)
    assert found == 0 or fits(found)
    assert not fits(found + 1)
    assert len(tried) <= 4 * LARGEST_SIZE.bit_length()


def test_a_line_is_followed_at_once() -> None:
    tried: list[int] = []

    def taken(size: int) -> int:
        tried.append(size)
        return max(2_000_000 + 1000 * size, 270_000 * size)

    assert last_within(taken, 100_000_000) == 370
    assert len(tried) <= 8
