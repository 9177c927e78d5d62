"""A heap of values by key, compiled: the least at hand, any value's key changed in place.

Invariant: `place[value]` is where a value stands in `items`, or -1; no value stands there twice. Of equal keys the
smaller value comes first, so that what comes out does not depend on what went in when.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.orders.arrays import Ints
from solvers.orders.compiled import inner


class Heap(NamedTuple):
    items: Ints
    place: Ints
    key: NDArray[np.float64]
    many: Ints  # one number


@inner
def empty_heap(values: int) -> Heap:
    return Heap(
        np.zeros(values, np.int64), np.full(values, -1, np.int64), np.zeros(values, np.float64), np.zeros(1, np.int64)
    )


@inner
def put(heap: Heap, value: int, key: float) -> None:
    """Put a value in, or give it another key."""
    place = heap.place[value]
    heap.key[value] = key
    if place < 0:
        place = heap.many[0]
        heap.many[0] += 1
        _set(heap, place, value)
    if _rise(heap, place) == place:
        _sink(heap, place)


@inner
def take_out(heap: Heap, value: int) -> None:
    place = heap.place[value]
    heap.place[value] = -1
    heap.many[0] -= 1
    last = heap.items[heap.many[0]]
    if last != value:
        _set(heap, place, last)
        if _rise(heap, place) == place:
            _sink(heap, place)


@inner
def _set(heap: Heap, place: int, value: int) -> None:
    heap.items[place] = value
    heap.place[value] = place


@inner
def _before(heap: Heap, one: int, other: int) -> bool:
    first, then = heap.key[one], heap.key[other]
    return first < then or (first == then and one < other)


@inner
def _rise(heap: Heap, place: int) -> int:
    value = heap.items[place]
    while place:
        above = (place - 1) >> 1
        other = heap.items[above]
        if not _before(heap, value, other):
            break
        _set(heap, place, other)
        place = above
    _set(heap, place, value)
    return place


@inner
def _sink(heap: Heap, place: int) -> None:
    value = heap.items[place]
    while True:
        below = 2 * place + 1
        if below >= heap.many[0]:
            break
        if below + 1 < heap.many[0] and _before(heap, heap.items[below + 1], heap.items[below]):
            below += 1
        other = heap.items[below]
        if not _before(heap, other, value):
            break
        _set(heap, place, other)
        place = below
    _set(heap, place, value)
