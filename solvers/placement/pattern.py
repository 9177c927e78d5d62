"""The memory of later runs of a default session: one block laid out by the first run's requests, and outputs beside it.

Invariant: the block is that of ONNX Runtime's memory pattern. Each request takes the smallest gap between live blocks,
the lowest of equals, otherwise the room above the highest block; nothing is given back before the run ends. Outputs and
workspace are requested separately, as they come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from solvers.placement.chunks import rounded
from solvers.placement.lives import Lives
from solvers.problem import Problem


def block_of(lives: Lives) -> int:
    """The bytes of the block with a place for all of these, which are requested in this order at each moment."""
    live: list[tuple[int, int]] = []  # the begin and end of each live block, by address
    ending: dict[int, list[tuple[int, int]]] = {}
    moments = sorted(zip(*(column.tolist() for column in lives), strict=True), key=lambda life: life[0])
    ends = sorted({end for _, end, _ in moments})
    highest = gone = 0
    for start, end, size in moments:
        while gone < len(ends) and ends[gone] <= start:
            for block in ending.pop(ends[gone], ()):
                del live[bisect_left(live, block)]
            gone += 1
        if size:
            place, address = _best(live, rounded(size))
            block = (address, address + rounded(size))
            live.insert(place, block)
            ending.setdefault(end, []).append(block)
            highest = max(highest, block[1])
    return highest


def _best(live: Sequence[tuple[int, int]], size: int) -> tuple[int, int]:
    """The index among the live blocks, and the address: the gap whose remainder would be smallest."""
    place, address, least, reached = len(live), live[-1][1] if live else 0, -1, 0
    for number, (begin, end) in enumerate(live):
        over = begin - reached - size
        if over >= 0 and (least < 0 or over < least):
            place, address, least = number, reached, over
            if not over:
                break
        reached = end
    return place, address


def outputs_apart(problem: Problem) -> Problem:
    """The problem as later runs of a default session hold it: one block for all except the outputs, from the beginning,
    with the outputs beside it."""
    apart = frozenset(problem.outputs)
    sizes = tuple(0 if value in apart else size for value, size in enumerate(problem.sizes))
    return replace(problem, sizes=sizes, resident=problem.resident + sum(problem.sizes[value] for value in apart))
