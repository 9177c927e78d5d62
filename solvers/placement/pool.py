"""A pool for the small ones of thousands of lifetimes, which hangs from the top of the block.

Small lifetimes that fill the gaps between large ones leave no gap large enough for the next large one. By themselves,
in the order of their starts or lengths, they waste next to nothing. So they have a pool of their own, whose depth
changes with time, and the large ones have a ceiling.

Invariant: what is placed below the rise of `beside` meets nothing of the pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.placement.lives import Ints, Lives

LEVELS = 3000, 10_000, 30_000  # a lifetime is small that goes so many times into the block
WASTED = 0.001  # of the block, by which a pool may make it higher


@dataclass(frozen=True, slots=True)
class SmallPool:
    """`large`: the lifetimes outside; `small`: those in the pool, `depth` down from its top to the end of each."""

    lives: Lives
    large: Ints
    small: Ints
    depth: Ints

    def beside(self) -> Lives:
        """The large lifetimes under the pool."""
        outside, reached = self.lives.of(self.large), self.envelope()
        if not len(self.small):
            return outside
        spans = np.ravel(np.column_stack((outside.start, outside.end)))
        return outside._replace(rise=np.maximum.reduceat(np.append(reached, 0), spans)[::2].copy())

    def envelope(self) -> Ints:
        """How deep the pool is at each moment."""
        reached = np.zeros(int(self.lives.end.max()), np.int64)
        for place in np.argsort(self.depth, kind="stable").tolist():
            item = self.small[place]
            reached[self.lives.start[item] : self.lives.end[item]] = self.depth[place]
        return reached

    def filled(self) -> Ints:
        """How much of the block is taken at each moment."""
        held, reached = self.lives.of(self.large).held(), self.envelope()
        reached[: len(held)] += held
        return reached

    def joined(self, offsets: Ints) -> Ints:
        """Offsets of all lifetimes, with these of the large ones."""
        result = np.empty(len(self.lives.size), np.int64)
        height = max(self.beside().height(offsets), int(self.depth.max(initial=0)))
        result[self.large], result[self.small] = offsets, height - self.depth
        return result


def pool_of(lives: Lives, goal: int) -> SmallPool:
    """A pool of as many of the small lifetimes as waste next to nothing of a block as high as the goal."""
    for level in LEVELS:
        is_small = lives.size * level < goal
        small, large = np.flatnonzero(is_small), np.flatnonzero(~is_small)
        if not len(small) or not len(large):
            continue
        some = lives.of(small)
        for order in _orders(some):
            pool = SmallPool(lives, large, small, some.placed(order) + some.size)
            if pool.filled().max() <= goal * (1 + WASTED):
                return pool
    return SmallPool(lives, np.arange(len(lives.size)), np.empty(0, np.int64), np.empty(0, np.int64))


def _orders(lives: Lives) -> Iterator[Ints]:
    """By start, as those of one size need no more room than they hold, and by length."""
    yield np.lexsort((-lives.size, lives.start))
    yield np.lexsort((-lives.size, lives.start - lives.end))
