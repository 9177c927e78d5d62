"""Offsets within a given height, or the proof that there are none: a compiled search of canonical placements.

After google/minimalloc (Moffitt, ASPLOS 2023). A placement of the least sum of offsets is canonical: taken in the order
of offsets, every lifetime lies as low as those before it let it. So the search only ever places a lifetime at its
`lowest`, at or above the last one placed. It gives up a branch where

- a section, which is a moment when more is held than before and after, has more to come than fits above its floor;
- a lifetime that is still to come would fit wholly below the next one: that placement has not the least sum.

What falls apart in time is solved apart, and a part that cannot be placed sends the search back to the placement that
cut it off, past all that was placed elsewhere since.

Invariant: `FITS` comes with offsets in whole units and nothing above the height; `NEVER` is a proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.orders.compiled import entry, inner

Ints = NDArray[np.int64]
FITS, NEVER, UNKNOWN = 1, 0, -1
LOW, HIGH, BEGIN, END, KEY, PARENT, AFTER = range(7)  # columns of a part
PART, TRIED, LIMIT, PLACED, CHANGED, PARTS = range(6)  # columns of a frame


class Case(NamedTuple):
    """Lifetimes by section: `first` is the first that each is in, `last` the one after its last."""

    size: Ints
    first: Ints
    last: Ints
    held: Ints  # by section: the sum of the sizes


class _Board(NamedTuple):
    """What has been placed, and what that means for what has not."""

    items: Ints  # a permutation; each part has a range of it
    lowest: Ints  # the top of what was placed below an item, in its time
    waiting: NDArray[np.bool_]
    left: Ints  # by section: the sum of the sizes that wait
    placed: Ints  # in order
    scratch: Ints
    cover: Ints  # these three hold nothing for long
    tally: Ints
    part: Ints  # a range of items, one of sections, the key last placed, the frame that did, the part to do afterwards
    frame: Ints  # a part, the key last tried, where there is nothing to try, and marks of what stood when it was opened


@entry
def search(case: Case, rank: Ints, height: int, most: int, offset: Ints, halt: Ints) -> tuple[int, int]:
    """Fill `offset`; `rank` is the preference among equal places, `most` the items looked at before it gives up, as it
    does when `halt` says so.

    The key of a placement is its place, then its rank; keys rise along a part. Returns how it ended, and the work.
    """
    count = len(case.size)
    board = _empty(case)
    twin = _twins(case, rank)
    changed, before = np.empty(8 * count, np.int64), np.empty(8 * count, np.int64)
    placed, changes, parts, work, depth, pending = 0, 0, 1, 0, -1, 0
    while pending >= 0:
        work += board.part[pending, HIGH] - board.part[pending, LOW]
        if work > most or halt[0]:
            return UNKNOWN, work
        depth += 1
        key = board.part[pending, KEY]
        frame = board.frame[depth]
        frame[PART], frame[TRIED], frame[LIMIT] = (
            pending,
            key,
            _limit(case, board, pending, max(key, 0) // count, height),
        )
        frame[PLACED], frame[CHANGED], frame[PARTS] = placed, changes, parts
        while True:  # until something is placed
            frame = board.frame[depth]
            now = board.part[frame[PART]]
            chosen, key = _next(board, now, rank, twin, frame[TRIED], frame[LIMIT])
            if chosen >= 0:
                break
            if now[PARENT] < 0:
                return NEVER, work
            depth = now[PARENT]
            _undo(case, board, depth, placed, changed, before, changes)
            placed, changes, parts = board.frame[depth, PLACED], board.frame[depth, CHANGED], board.frame[depth, PARTS]
        frame[TRIED] = key
        offset[chosen] = key // count
        board.placed[placed] = chosen
        placed += 1
        if changes + count > len(changed):
            changed = np.concatenate((changed, np.empty(len(changed), np.int64)))
            before = np.concatenate((before, np.empty(len(before), np.int64)))
        changes = _place(case, board, now[LOW], now[HIGH], chosen, changed, before, changes)
        made = _split(case, board, now, parts)
        for one in range(parts, parts + made):
            board.part[one, KEY], board.part[one, PARENT] = key, depth
            board.part[one, AFTER] = one + 1 if one + 1 < parts + made else now[AFTER]
        pending = parts if made else now[AFTER]
        parts += made
    return FITS, work


@inner
def _empty(case: Case) -> _Board:
    count, sections = len(case.size), len(case.held)
    part = np.zeros((2 * count + 2, 7), np.int64)
    part[0, HIGH], part[0, END] = count, sections
    part[0, KEY] = part[0, PARENT] = part[0, AFTER] = -1
    return _Board(
        np.arange(count),
        np.zeros(count, np.int64),
        np.ones(count, np.bool_),
        case.held.copy(),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(sections + 1, np.int64),
        np.empty(sections + 1, np.int64),
        part,
        np.empty((count + 1, 6), np.int64),
    )


@inner
def _twins(case: Case, rank: Ints) -> Ints:
    """For each lifetime its equal that comes right before it in rank, and so is placed before it; or -1."""
    order, twin = np.argsort(rank), np.full(len(rank), -1)
    for place in range(1, len(order)):
        item, other = order[place], order[place - 1]
        same = case.size[item] == case.size[other] and case.first[item] == case.first[other]
        if same and case.last[item] == case.last[other]:
            twin[item] = other
    return twin


@inner
def _limit(case: Case, board: _Board, number: int, last: int, height: int) -> int:
    """Nothing need be tried at this place or above; 0 where the part does not fit. `last` was the last place."""
    part = board.part[number]
    items = board.items[part[LOW] : part[HIGH]]
    limit = height
    for item in items:
        if max(board.lowest[item], last) + case.size[item] > height:
            return 0
        limit = min(limit, board.lowest[item] + case.size[item])
    ahead = board.cover  # for each section: itself, or a later one if it has its floor
    for section in range(part[BEGIN], part[END] + 1):
        ahead[section] = section
    for place in np.argsort(board.lowest[items]):
        item = items[place]
        floor = max(board.lowest[item], last)
        section = _root(ahead, case.first[item])
        while section < case.last[item]:
            if floor + board.left[section] > height:
                return 0
            ahead[section] = section + 1
            section = _root(ahead, section)
    return limit


@inner
def _root(ahead: Ints, section: int) -> int:
    while ahead[section] != section:
        ahead[section] = ahead[ahead[section]]
        section = ahead[section]
    return section


@inner
def _next(board: _Board, part: Ints, rank: Ints, twin: Ints, tried: int, limit: int) -> tuple[int, int]:
    """What to place next, the lowest and then the first in rank, and its key; -1 if all was tried."""
    chosen, least = -1, 0
    for item in board.items[part[LOW] : part[HIGH]]:
        if board.lowest[item] < limit:
            key = board.lowest[item] * len(rank) + rank[item]
            if key > tried and (chosen < 0 or key < least) and (twin[item] < 0 or not board.waiting[twin[item]]):
                chosen, least = item, key
    return chosen, least


@inner
def _place(
    case: Case, board: _Board, low: int, high: int, chosen: int, changed: Ints, before: Ints, changes: int
) -> int:
    """Put the chosen item at the head of its range and raise those that it meets; what they were is written down."""
    board.waiting[chosen] = False
    board.left[case.first[chosen] : case.last[chosen]] -= case.size[chosen]
    top = board.lowest[chosen] + case.size[chosen]
    for place in range(low, high):
        item = board.items[place]
        if item == chosen:
            board.items[place], board.items[low] = board.items[low], chosen
        elif case.first[item] < case.last[chosen] and case.last[item] > case.first[chosen] and board.lowest[item] < top:
            changed[changes], before[changes] = item, board.lowest[item]
            changes += 1
            board.lowest[item] = top
    return changes


@inner
def _undo(case: Case, board: _Board, depth: int, placed: int, changed: Ints, before: Ints, changes: int) -> None:
    """Back to what stood when the frame was opened."""
    for place in range(placed - 1, board.frame[depth, PLACED] - 1, -1):
        item = board.placed[place]
        board.waiting[item] = True
        board.left[case.first[item] : case.last[item]] += case.size[item]
    for place in range(changes - 1, board.frame[depth, CHANGED] - 1, -1):
        board.lowest[changed[place]] = before[place]


@inner
def _split(case: Case, board: _Board, now: Ints, parts: int) -> int:
    """Group what is left of a part into those that do not meet in time, write them down, and say how many."""
    begin, end = now[BEGIN], now[END]
    rest = board.items[now[LOW] + 1 : now[HIGH]]
    cover = board.cover
    cover[begin : end + 1] = 0
    for item in rest:
        cover[case.first[item] + 1] += 1
        cover[case.last[item]] -= 1
    groups, across = 0, 0
    for section in range(begin, end):
        across += cover[section]  # how many reach over from the section before
        if across == 0:
            groups += 1
        cover[section] = groups - 1
    board.tally[:groups] = 0
    for item in rest:
        board.tally[cover[case.first[item]]] += 1
    made, place = 0, now[LOW] + 1
    for group in range(groups):
        size = board.tally[group]
        if size:
            one = board.part[parts + made]
            one[LOW], one[HIGH], one[BEGIN], one[END] = place, place, end, begin
            board.tally[group] = parts + made
            made, place = made + 1, place + size
    board.scratch[: len(rest)] = rest
    for item in board.scratch[: len(rest)]:
        one = board.part[board.tally[cover[case.first[item]]]]
        board.items[one[HIGH]] = item
        one[HIGH] += 1
        one[BEGIN], one[END] = min(one[BEGIN], case.first[item]), max(one[END], case.last[item])
    return made
