"""The eviction walk itself, compiled.

Invariant: every order returned runs each node for the first time in the order given, and reads nothing that is gone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.orders.arrays import Arrays, Ints
from solvers.orders.compiled import entry, inner
from solvers.orders.live import (
    LOOKED,
    MARK,
    USED,
    Live,
    Scoring,
    cheapest,
    drop,
    evict,
    go_to,
    hold,
    look_again,
    nothing_live,
    reads_of,
    renew,
)

_RESTARTS = 30
_REPEATS = 10  # computes for each stage so far, and _SPARE more, after which the walk gives up
_SPARE = 1000
_LOOKS = 300  # at what would be rebuilt, for each node, and as many more as for so many nodes; walks that end take 100
_SPARE_LOOKS = 100


class Walk(NamedTuple):
    live: Live
    budget: int
    order: Ints
    steps: Ints  # one number, and whether to give up
    halt: Ints  # becomes 1 when time is up


@entry
def walk_through(arrays: Arrays, budget: int, scoring: Scoring, group: Ints, depth_first: bool, halt: Ints) -> Ints:
    """The order; empty if rebuilding goes round in circles or far back, or if `halt` comes to say so."""
    nodes = len(arrays.cost)
    live = nothing_live(arrays, scoring)
    walk = Walk(live, budget, np.zeros(_REPEATS * nodes + _SPARE, np.int64), np.zeros(2, np.int64), halt)
    rebuild = np.zeros(nodes, np.int64)
    for stage in range(nodes):
        go_to(arrays, live, stage, group[stage])
        reads = reads_of(arrays, stage)
        for _ in range(_RESTARTS):
            count = _missing(arrays, live, reads, rebuild, depth_first)
            if count == 0 or walk.steps[1]:
                break
            _rebuild(arrays, walk, stage, rebuild[:count])
        for value in reads:
            live.pinned[value] = False
        if not live.live[reads].all() or walk.steps[1]:
            return np.zeros(0, np.int64)
        _compute(arrays, walk, stage, stage)
        for value in reads:
            live.next_user[value] += 1
        renew(arrays, live, stage, stage + 1)
    return walk.order[: walk.steps[0] - 1].copy()


@inner
def _rebuild(arrays: Arrays, walk: Walk, stage: int, nodes: Ints) -> None:
    """Compute again what a stage is missing, as far as memory lets it."""
    live = walk.live
    later = _wanted_later(arrays, live, nodes)
    for value in reads_of(arrays, stage):
        live.pinned[value] = True
    known = 0
    for node in nodes:
        if not live.live[reads_of(arrays, node)].all():
            break
        for value in reads_of(arrays, node):
            live.wanted_at[value] = later[known]
            known += 1
            look_again(live, value)
        _compute(arrays, walk, node, stage)
    for node in nodes:
        for value in reads_of(arrays, node):
            live.wanted_at[value] = -1
            look_again(live, value)


@inner
def _wanted_later(arrays: Arrays, live: Live, nodes: Ints) -> Ints:
    """For each read of each of the nodes the next place at which the value is read, or -1; `wanted_at`, the first."""
    count = 0
    for node in nodes:
        count += len(reads_of(arrays, node))
    later = np.empty(count, np.int64)
    for place in range(len(nodes) - 1, -1, -1):
        reads = reads_of(arrays, nodes[place])
        count -= len(reads)
        for r, value in enumerate(reads):
            later[count + r] = live.wanted_at[value]
        for value in reads:
            live.wanted_at[value] = place
    return later


@inner
def _missing(arrays: Arrays, live: Live, reads: Ints, found: Ints, depth_first: bool) -> int:
    """The nodes to run again before `reads` are all there, in an order in which they can run."""
    live.now[MARK] += 1
    mark = live.now[MARK]
    count = 0
    for root in reads:
        node = arrays.writer[root]
        if live.live[root] or live.mark[node] == mark:
            continue
        live.mark[node] = mark
        live.stack[0] = node
        top = 1
        while top:
            node = live.stack[top - 1]
            pushed = False
            for value in reads_of(arrays, node):
                parent = arrays.writer[value]
                if not live.live[value] and live.mark[parent] != mark:
                    live.mark[parent] = mark
                    live.stack[top] = parent
                    top += 1
                    pushed = True
                    break
            if not pushed:
                live.now[LOOKED] += 1
                found[count] = node
                count += 1
                top -= 1
    if not depth_first:  # in index order
        found[:count].sort()
    return count


@inner
def _compute(arrays: Arrays, walk: Walk, node: int, stage: int) -> None:
    """Run a node whose reads are live, after making room for it."""
    live = walk.live
    looks = _LOOKS * (len(arrays.cost) + _SPARE_LOOKS)
    if walk.halt[0] or walk.steps[0] >= _REPEATS * stage + _SPARE or live.now[LOOKED] > looks:
        walk.steps[1] = 1
        return
    was_pinned = live.pinned[reads_of(arrays, node)].copy()
    for value in reads_of(arrays, node):
        live.pinned[value] = True
    for value in arrays.writes[arrays.writes_at[node] : arrays.writes_at[node + 1]]:
        if live.live[value]:
            drop(arrays, live, value)
    short = _make_room(arrays, walk, node, stage)
    for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
        value = arrays.writes[k]
        if _left_out(arrays, live, value):
            continue
        over = _overwritten(arrays, live, k, stage, short)
        if over >= 0:
            live.was_read[over] = True
            evict(arrays, live, over)
        hold(arrays, live, value)
    for place, value in enumerate(reads_of(arrays, node)):
        live.pinned[value] = was_pinned[place]
        live.was_read[value] = True
    walk.order[walk.steps[0]] = node
    walk.steps[0] += 1
    renew(arrays, live, node, stage)


@inner
def _make_room(arrays: Arrays, walk: Walk, node: int, stage: int) -> bool:
    """Evict until a node fits; whether there still is too little."""
    while _need(arrays, walk.live, node, stage) > walk.budget:
        victim = cheapest(arrays, walk.live)
        if victim < 0:
            return True
        evict(arrays, walk.live, victim)
    return False


@inner
def _left_out(arrays: Arrays, live: Live, value: int) -> bool:
    """An optional write that, as far as is known, nobody will read."""
    return (
        arrays.optional[value]
        and not arrays.output[value]
        and live.wanted_at[value] < 0
        and not live.pinned[value]
        and live.next_user[value] >= arrays.users_at[value + 1]
    )


@inner
def _overwritten(arrays: Arrays, live: Live, k: int, stage: int, desperate: bool) -> int:
    """The live read whose place this write may take: one without further use, or any if room is desperately short."""
    if arrays.output[arrays.writes[k]]:
        return -1
    for o in range(arrays.over_at[k], arrays.over_at[k + 1]):
        read = arrays.over[o]
        if not live.live[read] or arrays.once[arrays.writer[read]]:
            continue
        further = live.next_user[read]
        if further < arrays.users_at[read + 1] and arrays.users[further] == stage:
            further += 1
        unused = further >= arrays.users_at[read + 1] and not arrays.output[read] and live.wanted_at[read] < 0
        if unused or desperate:
            return read
    return -1


@inner
def _need(arrays: Arrays, live: Live, node: int, stage: int) -> int:
    need = live.now[USED] + arrays.workspace[node]
    for k in range(arrays.writes_at[node], arrays.writes_at[node + 1]):
        value = arrays.writes[k]
        if not _left_out(arrays, live, value) and _overwritten(arrays, live, k, stage, False) < 0:
            need += arrays.size[value]
    return need
