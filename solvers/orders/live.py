"""What is in memory during an eviction walk, and what goes first when there is no room.

What goes is the value of least score. Scores are not kept: each live value has a key that is never above its score, and
only what comes first by key is scored. A score falls when a value is read, when it is wanted later than it was or not
at all, and when something that it would be rebuilt from is there again; it has a new key then. It rises by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.compiled import inner
from solvers.orders.heap import Heap, empty_heap, put, take_out

Floats = NDArray[np.float64]
NEVER = 1 << 60
_CLOSURE = 400  # ancestors counted in a recompute cost, at most
_PINNED = 1e200
_AT_ONCE = -1.0  # the score of what nobody will read


class Scoring(NamedTuple):
    """What an eviction goes by: recompute cost and distance to these powers, weights, and what is kept for later."""

    weight: Floats
    cost_power: float
    distance_power: float
    keep: NDArray[np.bool_]  # group, value
    hint: float


class Live(NamedTuple):
    scoring: Scoring
    live: NDArray[np.bool_]
    was_read: NDArray[np.bool_]  # or may go unread
    pinned: NDArray[np.bool_]
    wanted_at: Ints  # value -> place in the list being rebuilt at which it is next read, or -1
    next_use: Ints
    next_user: Ints  # value -> place in users of the next reader not yet first computed
    own: Floats  # cost of the node that writes a value; infinite if it runs once
    rebuild: Floats  # recompute costs, or less of those that are stale
    stale: NDArray[np.bool_]
    held: Heap  # the live values that have a size
    mark: Ints
    stack: Ints
    aside: Ints
    now: Ints  # used, stage, group, last mark, what was looked at so far


USED, STAGE, GROUP, MARK, LOOKED = range(5)


@inner
def nothing_live(arrays: Arrays, scoring: Scoring) -> Live:
    values, nodes = len(arrays.size), len(arrays.cost)
    own = np.where(arrays.once, np.inf, arrays.cost)[arrays.writer]
    live = Live(
        scoring,
        np.zeros(values, np.bool_),
        np.zeros(values, np.bool_),
        np.zeros(values, np.bool_),
        np.full(values, -1, np.int64),
        np.full(values, NEVER, np.int64),
        arrays.users_at[:-1].copy(),
        own,
        own.copy(),
        np.ones(values, np.bool_),
        empty_heap(values),
        np.zeros(max(values, nodes) + 1, np.int64),
        np.zeros(max(values, nodes) + 1, np.int64),
        np.zeros(values, np.int64),
        np.zeros(5, np.int64),
    )
    live.now[USED] = arrays.resident
    for value in range(values):
        if arrays.users_at[value] < arrays.users_at[value + 1]:
            live.next_use[value] = arrays.users[arrays.users_at[value]]
    return live


@inner
def reads_of(arrays: Arrays, node: int) -> Ints:
    return arrays.reads[arrays.reads_at[node] : arrays.reads_at[node + 1]]


@inner
def writes_of(arrays: Arrays, node: int) -> Ints:
    return arrays.writes[arrays.writes_at[node] : arrays.writes_at[node + 1]]


@inner
def go_to(arrays: Arrays, live: Live, stage: int, group: int) -> None:
    """The next first compute. In another group other values are kept for later."""
    live.now[STAGE] = stage
    if live.now[GROUP] != group:
        live.now[GROUP] = group
        for place in range(live.held.many[0]):
            live.aside[place] = live.held.items[place]
        for place in range(live.held.many[0]):
            look_again(live, live.aside[place])


@inner
def hold(arrays: Arrays, live: Live, value: int) -> None:
    live.live[value] = True
    live.was_read[value] = not arrays.unread_stay or arrays.optional[value]
    live.now[USED] += arrays.size[value]
    if arrays.size[value]:
        put(live.held, value, _least_score(live, value))
    _make_stale(arrays, live, value, True)


@inner
def drop(arrays: Arrays, live: Live, value: int) -> None:
    """Forget a live value. A copy that nobody has read stays in memory where the runtime keeps such copies."""
    live.live[value] = False
    if live.was_read[value]:
        live.now[USED] -= arrays.size[value]
    if arrays.size[value]:
        take_out(live.held, value)
    _make_stale(arrays, live, value, False)


@inner
def evict(arrays: Arrays, live: Live, value: int) -> None:
    """Drop a value, which passes its next use on to what it would be rebuilt from."""
    drop(arrays, live, value)
    live.stack[0] = value
    top = 1
    while top:
        top -= 1
        gone = live.stack[top]
        for read in reads_of(arrays, arrays.writer[gone]):
            if live.next_use[gone] < live.next_use[read]:
                live.next_use[read] = live.next_use[gone]
                if not live.live[read]:
                    live.stack[top] = read
                    top += 1


@inner
def renew(arrays: Arrays, live: Live, node: int, stage: int) -> None:
    """The next use of what a node reads: by a first compute, or where something missing is rebuilt from it.

    What is missing keeps its next use until it is there again, so that only what was just read has a new one.
    """
    for value in reads_of(arrays, node):
        place = live.next_user[value]
        soonest = arrays.users[place] if place < arrays.users_at[value + 1] else NEVER
        for k in range(arrays.users_at[value], arrays.users_at[value + 1]):
            user = arrays.users[k]
            if user >= stage:
                break
            for write in writes_of(arrays, user):
                if not live.live[write]:
                    soonest = min(soonest, live.next_use[write])
        live.next_use[value] = soonest
        look_again(live, value)


@inner
def look_again(live: Live, value: int) -> None:
    """A value's score may be less than it was."""
    if live.held.place[value] >= 0:
        put(live.held, value, _least_score(live, value))


@inner
def cheapest(arrays: Arrays, live: Live) -> int:
    """The value to evict, or -1."""
    held, count, best, least = live.held, 0, -1, np.inf
    while held.many[0] and held.items[0] != best:
        value = held.items[0]
        if live.pinned[value]:
            live.aside[count] = value
            count += 1
            take_out(held, value)
            continue
        if held.key[value] == np.inf:
            break
        score = _score(arrays, live, value, least)
        put(held, value, score)
        if score <= least:
            best, least = value, score
    for place in range(count):
        put(held, live.aside[place], held.key[live.aside[place]])
    return best


@inner
def _factor(live: Live, value: int) -> float:
    """What a value's recompute cost is multiplied by."""
    scoring = live.scoring
    distance = max(1.0, float(live.next_use[value] - live.now[STAGE]))
    factor = scoring.weight[value] / _power(distance, scoring.distance_power)
    return factor * scoring.hint if scoring.keep[live.now[GROUP], value] else factor


@inner
def _least_score(live: Live, value: int) -> float:
    """The score, or less if it is not known what rebuilding the value takes; infinite if it must stay."""
    if not live.was_read[value]:
        return np.inf
    wanted = live.wanted_at[value]
    if wanted < 0 and live.next_use[value] == NEVER:
        return _AT_ONCE
    if live.rebuild[value] == np.inf:
        return np.inf
    if wanted >= 0:
        return _PINNED / (1.0 + wanted)
    return _power(live.rebuild[value] + 1.0, live.scoring.cost_power) * _factor(live, value)


@inner
def _score(arrays: Arrays, live: Live, value: int, most: float) -> float:
    """The score, or something above `most` if it is above that."""
    score = _least_score(live, value)
    if score == _AT_ONCE or score > most or not live.stale[value]:
        return score
    enough = np.inf
    if live.wanted_at[value] < 0 and most < np.inf:
        enough = 1.001 * (most / _factor(live, value)) ** (1.0 / live.scoring.cost_power)
    _find_recompute_cost(arrays, live, value, enough)
    return _least_score(live, value)


@inner
def _power(base: float, exponent: float) -> float:
    """The powers that rules have, which a general one takes ten times as long for."""
    if exponent == 1.0:
        return base
    if exponent == 0.5:
        return np.sqrt(base)
    return 1.0 if exponent == 0.0 else base**exponent


@inner
def _make_stale(arrays: Arrays, live: Live, value: int, cheaper: bool) -> None:
    """Whatever would be rebuilt through `value` has another recompute cost now."""
    live.now[MARK] += 1
    mark = live.now[MARK]
    live.stack[0] = value
    top = 1
    while top:
        top -= 1
        live.now[LOOKED] += 1
        changed = live.stack[top]
        for place in range(arrays.users_at[changed], arrays.users_at[changed + 1]):
            if arrays.users[place] >= live.now[STAGE]:  # it has not run yet
                break
            for write in writes_of(arrays, arrays.users[place]):
                if live.mark[write] == mark:
                    continue
                live.mark[write] = mark
                live.stale[write] = True
                if cheaper:
                    live.rebuild[write] = live.own[write]
                    if live.held.place[write] >= 0:
                        look_again(live, write)
                if not live.live[write] and live.next_use[write] < NEVER:
                    live.stack[top] = write
                    top += 1


@inner
def _find_recompute_cost(arrays: Arrays, live: Live, value: int, most: float) -> None:
    """What rebuilding a value takes; no more is counted than shows that it is over `most`."""
    live.now[MARK] += 1
    mark = live.now[MARK]
    total, count, top = 0.0, 0, 1
    live.stack[0] = arrays.writer[value]
    live.mark[arrays.writer[value]] = mark
    while top and count < _CLOSURE and total <= most:
        top -= 1
        node = live.stack[top]
        count += 1
        live.now[LOOKED] += 1
        total += np.inf if arrays.once[node] else arrays.cost[node]
        for read in reads_of(arrays, node):
            parent = arrays.writer[read]
            if not live.live[read] and live.mark[parent] != mark:
                live.mark[parent] = mark
                live.stack[top] = parent
                top += 1
    live.stale[value] = total > most
    live.rebuild[value] = total
