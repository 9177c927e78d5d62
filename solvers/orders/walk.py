"""The eviction walk itself, compiled.

Invariant: every order returned runs each node for the first time in the order given, and reads nothing that is gone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.compiled import entry, inner

Floats = NDArray[np.float64]
NEVER = 1 << 60
_CLOSURE = 400  # ancestors counted in a recompute cost, at most
_PINNED = 1e200
_RESTARTS = 30
_REPEATS = 10  # computes for each stage so far, and _SPARE more, after which the walk gives up
_SPARE = 1000


class Walk(NamedTuple):
    live: NDArray[np.bool_]
    was_read: NDArray[np.bool_]
    pinned: NDArray[np.bool_]
    wanted_at: Ints  # value -> place in the list being rebuilt at which it is next read, or -1
    next_use: Ints
    next_user: Ints  # value -> place in users of the next reader not yet first computed
    rebuild: Floats  # cached recompute costs
    stale: NDArray[np.bool_]
    held: Ints  # the live values that have a size
    held_at: Ints
    mark: Ints
    stack: Ints
    order: Ints
    now: Ints  # used, len(order), len(held), last mark, whether to give up
    halt: Ints  # becomes 1 when time is up


_USED, _STEPS, _HELD, _MARK, _FULL = range(5)


@entry
def walk_through(
    arrays: Arrays,
    budget: int,
    weight: Floats,
    cost_power: float,
    distance_power: float,
    depth_first: bool,
    group: Ints,
    keep: NDArray[np.bool_],
    hint: float,
    halt: Ints,
) -> Ints:
    """The order; empty if rebuilding goes round in circles, or if `halt` comes to say so."""
    values, nodes = len(arrays.size), len(arrays.cost)
    walk = Walk(
        np.zeros(values, np.bool_),
        np.zeros(values, np.bool_),
        np.zeros(values, np.bool_),
        np.full(values, -1, np.int64),
        np.full(values, NEVER, np.int64),
        arrays.users_at[:-1].copy(),
        np.zeros(values, np.float64),
        np.ones(values, np.bool_),
        np.zeros(values, np.int64),
        np.full(values, -1, np.int64),
        np.zeros(max(values, nodes) + 1, np.int64),
        np.zeros(max(values, nodes) + 1, np.int64),
        np.zeros(_REPEATS * nodes + _SPARE, np.int64),
        np.zeros(5, np.int64),
        halt,
    )
    walk.now[_USED] = arrays.resident
    for value in range(values):
        if arrays.users_at[value] < arrays.users_at[value + 1]:
            walk.next_use[value] = arrays.users[arrays.users_at[value]]
    rebuild = np.zeros(nodes, np.int64)
    for stage in range(nodes):
        keeping = keep[group[stage]]
        reads = arrays.reads[arrays.reads_at[stage] : arrays.reads_at[stage + 1]]
        for _ in range(_RESTARTS):
            count = _missing(arrays, walk, reads, rebuild, depth_first)
            if count == 0 or walk.now[_FULL]:
                break
            for place in range(count - 1, -1, -1):
                for value in _reads_of(arrays, rebuild[place]):
                    walk.wanted_at[value] = place
            for value in reads:
                walk.pinned[value] = True
            for place in range(count):
                node = rebuild[place]
                if not walk.live[_reads_of(arrays, node)].all():
                    break
                for value in _reads_of(arrays, node):
                    walk.wanted_at[value] = _next_wanted(arrays, rebuild, place + 1, count, value)
                _compute(arrays, walk, budget, node, stage, weight, cost_power, distance_power, keeping, hint)
            for place in range(count):
                for value in _reads_of(arrays, rebuild[place]):
                    walk.wanted_at[value] = -1
        for value in reads:
            walk.pinned[value] = False
        if not walk.live[_reads_of(arrays, stage)].all() or walk.now[_FULL]:
            return np.zeros(0, np.int64)
        _compute(arrays, walk, budget, stage, stage, weight, cost_power, distance_power, keeping, hint)
        for value in reads:
            walk.next_user[value] += 1
        _renew(arrays, walk, stage, stage + 1)
    return walk.order[: walk.now[_STEPS] - 1].copy()


@inner
def _reads_of(arrays: Arrays, node: int) -> Ints:
    return arrays.reads[arrays.reads_at[node] : arrays.reads_at[node + 1]]


@inner
def _writes_of(arrays: Arrays, node: int) -> Ints:
    return arrays.writes[arrays.writes_at[node] : arrays.writes_at[node + 1]]


@inner
def _next_wanted(arrays: Arrays, rebuild: Ints, start: int, count: int, value: int) -> int:
    for place in range(start, count):
        for read in _reads_of(arrays, rebuild[place]):
            if read == value:
                return place
    return -1


@inner
def _missing(arrays: Arrays, walk: Walk, reads: Ints, found: Ints, depth_first: bool) -> int:
    """The nodes to run again before `reads` are all there, in an order in which they can run."""
    walk.now[_MARK] += 1
    mark = walk.now[_MARK]
    count = 0
    for root in reads:
        node = arrays.writer[root]
        if walk.live[root] or walk.mark[node] == mark:
            continue
        walk.mark[node] = mark
        walk.stack[0] = node
        top = 1
        while top:
            node = walk.stack[top - 1]
            pushed = False
            for value in _reads_of(arrays, node):
                parent = arrays.writer[value]
                if not walk.live[value] and walk.mark[parent] != mark:
                    walk.mark[parent] = mark
                    walk.stack[top] = parent
                    top += 1
                    pushed = True
                    break
            if not pushed:
                found[count] = node
                count += 1
                top -= 1
    if not depth_first:  # in index order
        found[:count].sort()
    return count


@inner
def _power(base: float, exponent: float) -> float:
    """The powers that rules have, which a general one takes ten times as long for."""
    if exponent == 1.0:
        return base
    if exponent == 0.5:
        return np.sqrt(base)
    return 1.0 if exponent == 0.0 else base**exponent


@inner
def _compute(
    arrays: Arrays,
    walk: Walk,
    budget: int,
    node: int,
    stage: int,
    weight: Floats,
    cost_power: float,
    distance_power: float,
    keeping: NDArray[np.bool_],
    hint: float,
) -> None:
    """Run a node whose reads are live, after making room for it."""
    if walk.halt[0] or walk.now[_STEPS] >= _REPEATS * stage + _SPARE:
        walk.now[_FULL] = 1
        return
    was_pinned = walk.pinned[_reads_of(arrays, node)].copy()
    for value in _reads_of(arrays, node):
        walk.pinned[value] = True
    for value in _writes_of(arrays, node):
        if walk.live[value]:
            _drop(arrays, walk, value)
    while True:
        short = _shortage(arrays, walk, budget, node, stage)
        if short <= 0:
            break
        victim = _cheapest(arrays, walk, stage, weight, cost_power, distance_power, keeping, hint)
        if victim < 0:
            break
        _drop(arrays, walk, victim)
        _propagate(arrays, walk, victim)
    short = _shortage(arrays, walk, budget, node, stage)
    for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
        value = arrays.writes[k]
        if _left_out(arrays, walk, value, stage):
            continue
        over = _overwritten(arrays, walk, k, stage, short > 0)
        if over >= 0:
            walk.was_read[over] = True
            _drop(arrays, walk, over)
            _propagate(arrays, walk, over)
        _hold(arrays, walk, value)
    for place, value in enumerate(_reads_of(arrays, node)):
        walk.pinned[value] = was_pinned[place]
        walk.was_read[value] = True
    walk.order[walk.now[_STEPS]] = node
    walk.now[_STEPS] += 1
    _renew(arrays, walk, node, stage)


@inner
def _left_out(arrays: Arrays, walk: Walk, value: int, stage: int) -> bool:
    """An optional write that, as far as is known, nobody will read."""
    return (
        arrays.optional[value]
        and not arrays.output[value]
        and walk.wanted_at[value] < 0
        and not walk.pinned[value]
        and walk.next_user[value] >= arrays.users_at[value + 1]
    )


@inner
def _overwritten(arrays: Arrays, walk: Walk, k: int, stage: int, desperate: bool) -> int:
    """The live read whose place this write may take: one without further use, or any if room is desperately short."""
    if arrays.output[arrays.writes[k]]:
        return -1
    for o in range(arrays.over_at[k], arrays.over_at[k + 1]):
        read = arrays.over[o]
        if not walk.live[read] or arrays.once[arrays.writer[read]]:
            continue
        further = walk.next_user[read]
        if further < arrays.users_at[read + 1] and arrays.users[further] == stage:
            further += 1
        unused = further >= arrays.users_at[read + 1] and not arrays.output[read] and walk.wanted_at[read] < 0
        if unused or desperate:
            return read
    return -1


@inner
def _shortage(arrays: Arrays, walk: Walk, budget: int, node: int, stage: int) -> int:
    need = walk.now[_USED] + arrays.workspace[node] - budget
    for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
        value = arrays.writes[k]
        if not _left_out(arrays, walk, value, stage) and _overwritten(arrays, walk, k, stage, False) < 0:
            need += arrays.size[value]
    return need


@inner
def _hold(arrays: Arrays, walk: Walk, value: int) -> None:
    walk.live[value] = True
    walk.was_read[value] = False
    walk.now[_USED] += arrays.size[value]
    if arrays.size[value]:
        walk.held_at[value] = walk.now[_HELD]
        walk.held[walk.now[_HELD]] = value
        walk.now[_HELD] += 1
    _make_stale(arrays, walk, value)


@inner
def _drop(arrays: Arrays, walk: Walk, value: int) -> None:
    """Forget a live value. A copy that nobody has read stays in memory where the runtime keeps such copies."""
    walk.live[value] = False
    if walk.was_read[value] or not arrays.unread_stay or arrays.optional[value]:
        walk.now[_USED] -= arrays.size[value]
    if arrays.size[value]:
        place = walk.held_at[value]
        walk.now[_HELD] -= 1
        other = walk.held[walk.now[_HELD]]
        walk.held[place] = other
        walk.held_at[other] = place
        walk.held_at[value] = -1
    _make_stale(arrays, walk, value)


@inner
def _make_stale(arrays: Arrays, walk: Walk, value: int) -> None:
    """Whatever would be rebuilt through `value` has another recompute cost now."""
    walk.now[_MARK] += 1
    mark = walk.now[_MARK]
    walk.stack[0] = value
    top = 1
    while top:
        top -= 1
        changed = walk.stack[top]
        for place in range(arrays.users_at[changed], arrays.users_at[changed + 1]):
            for write in _writes_of(arrays, arrays.users[place]):
                if walk.mark[write] == mark:
                    continue
                walk.mark[write] = mark
                walk.stale[write] = True
                if not walk.live[write] and walk.next_use[write] < NEVER:
                    walk.stack[top] = write
                    top += 1


@inner
def _recompute_cost(arrays: Arrays, walk: Walk, value: int, most: float) -> float:
    """What rebuilding a value takes; no more is counted than shows that it is over `most`."""
    if not walk.stale[value]:
        return walk.rebuild[value]
    walk.now[_MARK] += 1
    mark = walk.now[_MARK]
    total, count, top = 0.0, 0, 1
    walk.stack[0] = arrays.writer[value]
    walk.mark[arrays.writer[value]] = mark
    while top and count < _CLOSURE:
        top -= 1
        node = walk.stack[top]
        count += 1
        total += np.inf if arrays.once[node] else arrays.cost[node]
        if total > most:
            return total
        for read in _reads_of(arrays, node):
            parent = arrays.writer[read]
            if not walk.live[read] and walk.mark[parent] != mark:
                walk.mark[parent] = mark
                walk.stack[top] = parent
                top += 1
    walk.rebuild[value] = total
    walk.stale[value] = False
    return total


@inner
def _renew(arrays: Arrays, walk: Walk, node: int, stage: int) -> None:
    """The next use of what a node reads: by a first compute, or where something missing is rebuilt from it.

    What is missing keeps its next use until it is there again, so that only what was just read has a new one.
    """
    for value in _reads_of(arrays, node):
        place = walk.next_user[value]
        soonest = arrays.users[place] if place < arrays.users_at[value + 1] else NEVER
        for k in range(arrays.users_at[value], arrays.users_at[value + 1]):
            user = arrays.users[k]
            if user >= stage:
                break
            for write in _writes_of(arrays, user):
                if not walk.live[write]:
                    soonest = min(soonest, walk.next_use[write])
        walk.next_use[value] = soonest


@inner
def _propagate(arrays: Arrays, walk: Walk, victim: int) -> None:
    """A value that has gone passes its next use on to what it would be rebuilt from."""
    walk.stack[0] = victim
    top = 1
    while top:
        top -= 1
        value = walk.stack[top]
        for read in _reads_of(arrays, arrays.writer[value]):
            if walk.next_use[value] < walk.next_use[read]:
                walk.next_use[read] = walk.next_use[value]
                if not walk.live[read]:
                    walk.stack[top] = read
                    top += 1


@inner
def _cheapest(
    arrays: Arrays,
    walk: Walk,
    stage: int,
    weight: Floats,
    cost_power: float,
    distance_power: float,
    keeping: NDArray[np.bool_],
    hint: float,
) -> int:
    """The value to evict, or -1."""
    best, least = -1, np.inf
    for place in range(walk.now[_HELD]):
        value = walk.held[place]
        if walk.pinned[value]:
            continue
        if arrays.unread_stay and not walk.was_read[value] and not arrays.optional[value]:
            continue
        wanted = walk.wanted_at[value]
        if wanted < 0 and walk.next_use[value] == NEVER:
            return value
        node = arrays.writer[value]
        if arrays.once[node]:
            continue
        if wanted >= 0:
            score = _PINNED / (1.0 + wanted)
            if score < least and _recompute_cost(arrays, walk, value, np.inf) < np.inf:
                best, least = value, score
            continue
        distance = max(1.0, float(walk.next_use[value] - stage))
        factor = weight[value] / _power(distance, distance_power)
        if keeping[value]:
            factor *= hint
        if _power(arrays.cost[node] + 1.0, cost_power) * factor >= least:  # it costs no less than its own node
            continue
        most = (least / factor) ** (1.0 / cost_power) if least < np.inf else np.inf
        cost = _recompute_cost(arrays, walk, value, most * 1.001)
        score = _power(cost + 1.0, cost_power) * factor
        if cost < np.inf and score < least:
            best, least = value, score
    return best
