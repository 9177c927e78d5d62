"""What the loops in C++ refuse: arrays of another type or length, and candidates that name what there is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from solvers import _loops
from solvers.annealing.cooling import Cooling, Kept
from solvers.orders.arrays import arrays_of
from solvers.orders.evict import Scoring
from solvers.pebbles.copies import Copies
from solvers.placement.canonical import sections
from solvers.placement.lives import Lives
from solvers.problem import Node, Problem

CHAIN = Problem(
    nodes=tuple(Node(1, (k - 1,) if k else (), (k,)) for k in range(5)), sizes=(1, 2, 3, 4, 5), outputs=(4,)
)
ARRAYS, ENDED, COPIES = arrays_of(CHAIN), arrays_of(CHAIN.ended()), Copies(CHAIN).tables
COOLING = Cooling(10, 1.0, 1, 1.0, 10.0)
LIVES = Lives(*(np.array(column, np.int64) for column in ([0, 1, 2], [2, 3, 4], [1, 1, 1])))
SECTIONS = sections(LIVES)


def ints(*items: int) -> Any:
    return np.array(items, np.int64)


def flags(count: int) -> Any:
    return np.ones(count, np.bool_)


CALM = ints(0)
ORDER, WHOLE = ints(0, 1, 2, 3, 4), ints(0, 1, 2, 3, 4, 5)
SCORING = Scoring(np.ones(5), 1.0, 1.0, np.zeros((2, 5), np.bool_), 1.0)
# Two stages, each run in one way.
STAGES = (
    np.ones(3), ints(1, 1, 1), ints(1, 1, 1), ints(0, 0, 0), np.zeros(3), ints(0, 1, 2, 3), np.zeros(3), ints(1, 1, 1),
    flags(3), flags(3), ints(1, 1, 1), ints(1, 1, 1), ints(1, 1, 1),
)  # fmt: skip
FLOATING = (np.ones(3), np.ones(3), *(ints(1, 1, 1) for _ in range(5)))

Path = tuple[int, ...]
# For each loop arguments that it takes; arrays that it writes; arrays that may have any length.
GOOD: dict[str, tuple[tuple[Any, ...], set[int], set[Path]]] = {
    "memory_of": ((ARRAYS, ORDER), set(), {(1,)}),
    "blocks_taken": ((ARRAYS, ORDER), set(), {(1,)}),
    "trim": ((ARRAYS, ORDER), set(), {(1,)}),
    "walk_through": ((ENDED, 9, SCORING, ints(0, 0, 0, 0, 1, 1), False, CALM), set(), {(2, 3)}),
    "follow_traces": (
        (ARRAYS, flags(5), np.ones(5), np.ones(5), ints(*[-1] * 5), ints(*[-1] * 5), np.ones(5)),
        {3, 4, 5, 6},
        set(),
    ),
    "reach": ((COPIES, ints(3, 4), ints(*[9] * 6), 99, 99, 0, CALM), set(), set()),
    "anneal_orders": ((ENDED, WHOLE, 9, 99, -1, COOLING, Kept.NOTHING, CALM), set(), {(1,)}),
    "fill_segments": ((1, 3, np.ones((3, 9)), np.ones((3, 9)), ints(0, 0, 0), STAGES), {2, 3, 4}, set()),
    "fill_floating": ((2, np.ones((4, 9)), FLOATING), {1}, {(1,)}),
    "minimum_cut": ((3, ints(0, 1), ints(1, 2), ints(5, 4), 0, 2), set(), set()),
    "place_in_order": ((ints(2, 0, 1), LIVES, ints(0, 0, 0)), {2}, {(0,)}),
    "place_from_bottom": ((SECTIONS, ints(0, 1, 2), ints(0, 0, 0)), {2}, {(0, 3)}),
    "search_canonical": ((SECTIONS, ints(0, 1, 2), 2, 99, ints(0, 0, 0), CALM), {4}, {(0, 3)}),
    "place_by_ejection": ((LIVES, np.ones(3), np.ones(3), 2, ints(-1, -1, -1), 1, 99, CALM), {1, 4}, set()),
    "take_buffers": ((ints(0, ~0, 1, ~1), ints(0, 0)), set(), {(0,), (1,)}),
    "above": ((ARRAYS, ORDER, 9), set(), {(1,)}),
    "held_later": ((ARRAYS, ORDER), set(), {(1,)}),
    "arrange": ((ENDED, WHOLE, 9, 99, -1, ARRAYS, 9, 9, 9, COOLING, Kept.NOTHING, CALM), set(), {(1,)}),
    "drawn": ((1, 2, 3), set(), set()),
    "annealed": ((ENDED, WHOLE, 9, 99, COOLING, Kept.NOTHING), set(), {(1,)}),
    "wait_when_late": ((), set(), set()),
}


def call(name: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(_loops, name)(*arguments)


def copied(item: Any) -> Any:
    """With arrays of its own."""
    if isinstance(item, tuple):
        parts = [copied(part) for part in item]
        return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)
    return item.copy() if isinstance(item, np.ndarray) else item


def arrays_in(item: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Where each array stands in arguments, and in the records among them."""
    if isinstance(item, np.ndarray):
        yield at, item
    elif isinstance(item, tuple):
        for place, part in enumerate(item):
            yield from arrays_in(part, (*at, place))


def with_other(item: Any, at: Path, other: Any) -> Any:
    """The same with another part at a place."""
    if not at:
        return other
    parts = [with_other(part, at[1:], other) if place == at[0] else part for place, part in enumerate(item)]
    return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)


def other_type(array: Any) -> Any:
    return array.astype(np.float64 if array.dtype != np.float64 else np.int64)


def longer(array: Any) -> Any:
    """One more row, or one more item."""
    return np.concatenate([array, array[-1:] if len(array) else np.zeros(1, array.dtype)])


@pytest.fixture(params=GOOD)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_loop_has_a_row() -> None:
    assert set(GOOD) == {name for name in dir(_loops) if not name.startswith("_")}


def test_each_is_taken_as_it_stands(name: str) -> None:
    call(name, copied(GOOD[name][0]))


def test_arguments_are_counted(name: str) -> None:
    with pytest.raises(TypeError, match="arguments are taken"):
        call(name, (*GOOD[name][0], 1))


def test_an_array_of_another_type_is_refused(name: str) -> None:
    for at, array in arrays_in(GOOD[name][0]):
        others = [other_type(array), array[None], array.tolist()]
        if array.itemsize > 1:
            others.append(array.astype(array.dtype.newbyteorder()))
        for other in others:
            with pytest.raises(TypeError, match=r"dimensions and format|bytes-like|buffer"):
                call(name, with_other(copied(GOOD[name][0]), at, other))


def test_an_array_of_another_length_is_refused(name: str) -> None:
    good, _, free = GOOD[name]
    for at, array in arrays_in(good):
        if at not in free:
            with pytest.raises(ValueError, match=r"."):
                call(name, with_other(copied(good), at, longer(array)))


def test_what_may_not_be_written_is_refused(name: str) -> None:
    good, written, _ = GOOD[name]
    for place in written:
        arguments = copied(good)
        arguments[place].setflags(write=False)
        with pytest.raises(ValueError, match="read-only"):
            call(name, arguments)


def test_what_is_only_read_may_be_what_nobody_may_write(name: str) -> None:
    good, written, _ = GOOD[name]
    arguments = copied(good)
    for at, array in arrays_in(arguments):
        array.setflags(write=at[0] in written)
    call(name, arguments)


def test_a_record_with_a_field_too_few_is_refused(name: str) -> None:
    for place, argument in enumerate(GOOD[name][0]):
        if isinstance(argument, tuple):
            for other in (tuple(argument[:-1]), [*argument]):
                with pytest.raises(TypeError, match=f"a tuple of {len(argument)} fields"):
                    call(name, with_other(copied(GOOD[name][0]), (place,), other))


def rows_at(name: str, at: Path, *others: Any) -> list[tuple[str, Path, Any]]:
    return [(name, at, other) for other in others]


FIRST, LAST, STARTS = 1, 2, 5  # of Sections, and of the stages of `fill_segments`
WRONG = [
    *(
        row
        for name in ("anneal_orders", "arrange", "annealed")
        for row in rows_at(
            name, (1,), ints(), ints(5), ints(0, 1, 2, 4, 5), ints(1, 0, 2, 3, 4, 5), ORDER, ints(0, 1, 2, 3, 4, 6),
            ints(-1, 0, 1, 2, 3, 4, 5), ints(0, 1, 2, 3, 4, 1 << 62)
        )
    ),
    *rows_at("anneal_orders", (6,), 3, -1),
    *rows_at("anneal_orders", (5,), COOLING._replace(temperature=0.0), COOLING._replace(temperature=float("nan"))),
    *rows_at("arrange", (5,), ENDED),
    *rows_at("walk_through", (3,), ints(0, 0, 0, 0, 0, 2), ints(0, 0, 0, -1, 0, 0)),
    *rows_at("walk_through", (2,), SCORING._replace(keep=np.zeros((0, 5), np.bool_))),
    *rows_at("reach", (1,), ints(6), ints(-1), ints(4, 3), ints(3, 3)),
    *rows_at("fill_segments", (0,), 0, 4),
    *rows_at("fill_segments", (1,), 0, 4),
    *rows_at("fill_segments", (5, STARTS), ints(0, 1, 2, 4), ints(0, 2, 1, 3), ints(-1, 1, 2, 3)),
    *rows_at("fill_segments", (5, 2), ints(1, -1, 1)),
    *rows_at("fill_floating", (0,), 0, 3),
    *rows_at("fill_floating", (1,), np.ones((3, 9))),
    *rows_at("fill_floating", (2, 3), ints(1, -1, 1)),
    *rows_at("minimum_cut", (0,), 2, -1),
    *rows_at("minimum_cut", (1,), ints(0, 3), ints(0, -1)),
    *rows_at("minimum_cut", (2,), ints(1, 3), ints(1, -1)),
    *rows_at("minimum_cut", (4,), 3, -1),
    *rows_at("minimum_cut", (5,), 3, -1),
    *rows_at("place_in_order", (0,), ints(0, 3), ints(-1)),
    *rows_at("search_canonical", (1,), ints(0, 1, 3), ints(0, 1, 1), ints(-1, 0, 1)),
    *(
        row
        for name in ("search_canonical", "place_from_bottom")
        for row in (
            *rows_at(name, (0, FIRST), ints(-1, 0, 0), ints(9, 0, 0)), *rows_at(name, (0, LAST), ints(1, 1, 9))
        )
    ),
    *rows_at("take_buffers", (0,), ints(2), ints(~2)),
    *rows_at("take_buffers", (1,), ints(0, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "at", "other"), WRONG)
def test_what_names_what_there_is_not_is_refused(name: str, at: Path, other: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        call(name, with_other(copied(GOOD[name][0]), at, other))


@pytest.mark.parametrize("order", [ints(5), ints(-1), ints(0, 1, 2, 3, 1 << 62), ints(1, 0, 2, 3, 4), ints()])
def test_what_judges_orders_says_that_one_cannot_run(order: Any) -> None:
    assert all(len(part) == 0 for part in _loops.blocks_taken(ARRAYS, order))
    assert len(_loops.memory_of(ARRAYS, order)) == 0
    assert _loops.above(ARRAYS, order, 9) == _loops.held_later(ARRAYS, order) == -1


@pytest.mark.parametrize("order", [ints(5), ints(-1), ints(0, 1, 2, 3, 1 << 62)])
def test_nothing_is_left_of_an_order_that_names_no_node(order: Any) -> None:
    assert len(_loops.trim(ARRAYS, order)) == 0
