"""Takes back recomputation of the cut that does not move fewer bytes.

The cut assumes that recomputation within a kernel is free. Where the backward pass cannot fuse it after all, it reads
and writes as much as it saves, or more.

Invariant: the resulting order moves no more bytes under ideal fusion than the order without recomputation, nor than the
cut's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from solvers.methods.mincut.rebuild import Rebuilding
from solvers.methods.mincut.traffic import traffic_of
from solvers.orders.arrays import arrays_of
from solvers.orders.measure import trim
from solvers.problem import Problem

# parts weighed at least; and nodes weighed at most, which keeps a large graph within seconds
FEWEST, NODES_WEIGHED = 8, 40_000


def least_moved(problem: Problem, saved: Collection[int]) -> tuple[int, ...]:
    """The order of the saved values, with those added whose recomputation moves no fewer bytes."""
    rebuilding, arrays = Rebuilding.of(problem), arrays_of(problem)

    def order_of(kept: frozenset[int]) -> tuple[int, ...]:
        return tuple(trim(arrays, np.array(rebuilding.order(kept), np.int64)).tolist())

    kept = frozenset(saved)
    best = order_of(kept)
    moved = _moved(problem, best)
    parts = _recomputed(problem, best)
    for part in parts[: max(FEWEST, NODES_WEIGHED // len(problem.nodes))]:
        tried = order_of(kept | part)
        if (less := _moved(problem, tried)) <= moved:
            kept, best, moved = kept | part, tried, less
    plain = tuple(range(len(problem.nodes)))
    return plain if _moved(problem, plain) <= moved else best


def _moved(problem: Problem, order: Sequence[int]) -> tuple[int, int]:
    """Bytes moved with fusion, and without."""
    return traffic_of(problem, order).total, traffic_of(problem, order, "none").total


def _recomputed(problem: Problem, order: Sequence[int]) -> list[frozenset[int]]:
    """For each set of recomputed ops that read from one another: the values that are wanted of it, largest first."""
    again = {index for index, times in Counter(order).items() if times > 1}
    leader = {index: index for index in again}

    def find(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    writer, readers = problem.writers(), problem.readers()
    for index in sorted(again):
        for source in {writer[value] for value in problem.nodes[index].reads} & again:
            leader[find(index)] = find(source)
    wanted: dict[int, set[int]] = {}
    for index in sorted(again):
        for value in problem.nodes[index].writes:
            if any(problem.nodes[reader].backward and reader not in again for reader in readers[value]):
                wanted.setdefault(find(index), set()).add(value)
    parts = [frozenset(values) for values in wanted.values()]
    return sorted(parts, key=lambda values: (-sum(problem.sizes[value] for value in values), min(values)))
