"""Exact answers for tiny problems, by shortest paths over what is in memory; shares no code with any solver.

A state says which nodes have run, which values are held (whether each copy was read, and whether it sits in memory of
its own), and how many bytes are stuck in copies that nobody read. Whatever `lower` decides by looking ahead (when a
copy ends, whether a write is left out or takes a read's place, which copy of an output is the last) is a free choice
here; the choices that come true are `lower`'s or cost no less. Views are not handled.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import chain, combinations, product

from solvers.problem import Problem

Held = frozenset[tuple[int, bool, bool]]  # value, was read, has memory of its own
State = tuple[int, Held, int]  # nodes that ran, what is held, bytes stuck


def cheapest(problem: Problem, budget: int, *, in_order: bool = False) -> int | None:
    """The least cost of any order with repeats that fits; `in_order`: first computes as the nodes stand."""
    return _search(problem, budget, in_order, by_peak=False)


def least_peak(problem: Problem, *, in_order: bool = False) -> int:
    found = _search(problem, None, in_order, by_peak=True)
    assert found is not None
    return found


def _search(problem: Problem, budget: int | None, in_order: bool, by_peak: bool) -> int | None:
    assert not any(node.views for node in problem.nodes)
    every = (1 << len(problem.nodes)) - 1
    start: State = (0, frozenset(), 0)
    known = {start: problem.resident if by_peak else 0}
    heap: list[tuple[int, int, State]] = [(known[start], 0, start)]
    pushed = 0
    while heap:
        length, _, state = heapq.heappop(heap)
        if length > known[state]:
            continue
        if state[0] == every and set(problem.outputs) <= {value for value, _, own in state[1] if own}:
            return length
        for index in range(len(problem.nodes)):
            ran = state[0] >> index & 1
            if (ran and problem.nodes[index].once) or (in_order and not ran and index != state[0].bit_count()):
                continue
            for after, peak in _computes(problem, state, index):
                if budget is not None and peak > budget:
                    continue
                far = max(length, peak) if by_peak else length + problem.nodes[index].cost
                if far < known.get(after, far + 1):
                    known[after] = far
                    pushed += 1
                    heapq.heappush(heap, (far, pushed, after))
    return None


def _computes(problem: Problem, state: State, index: int) -> Iterator[tuple[State, int]]:
    """Every way to run a node now: the state after it, and the memory during it."""
    ran, held, stuck = state
    node, size = problem.nodes[index], problem.sizes
    copies = {value: (read, own) for value, read, own in held}
    if not set(node.reads) <= copies.keys():
        return
    for value in set(node.writes) & copies.keys():  # the old copy ended at its last use, or is stuck for ever
        read, own = copies.pop(value)
        if problem.unread_stay and own and not read:
            stuck += size[value]
        else:
            return  # it should have been dropped then: another path does
    before = sum(size[value] for value in copies)
    for read in node.reads:
        copies[read] = (True, copies[read][1])
    for places in product(*(_places(problem, index, value) for value in node.writes)):
        over = [place for place in places if isinstance(place, int)]
        if len(set(over)) < len(over):
            continue
        fresh = dict(zip(node.writes, places, strict=True))
        taken = sum(size[value] for value, place in fresh.items() if place == "own")
        peak = problem.resident + stuck + before + taken + node.workspace
        made = {value: (False, place == "own") for value, place in fresh.items() if place != "none"}
        optional = [value for value in (*node.reads, *made) if value not in over]
        for dropped in _subsets(optional):
            rest = {v: flags for v, flags in {**copies, **made}.items() if v not in dropped and v not in over}
            lost = 0
            if problem.unread_stay:
                lost = sum(size[value] for value in dropped if made.get(value) == (False, True))
            yield (ran | 1 << index, frozenset((v, *flags) for v, flags in rest.items()), stuck + lost), peak


def _places(problem: Problem, index: int, value: int) -> list[str | int]:
    """Where a write may go: memory of its own, nowhere, or the place of a read."""
    node, size = problem.nodes[index], problem.sizes
    over = [read for write, read in node.overwrites if write == value and size[read] == size[value]]
    return ["own", *(["none"] if value in problem.optional else []), *over]


def _subsets(values: list[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(values, many) for many in range(len(values) + 1))
