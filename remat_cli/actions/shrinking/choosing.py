"""Which way to recommend.

Invariant: what is recommended ran, gave outputs that are near enough, and took no longer than was allowed. A new file
is recommended only where it holds clearly less than two options do, and these only where they do so themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remat_cli.actions.shrinking.ways import TriedWay

CLEARLY = 0.95  # of what is held with less to do


@dataclass(frozen=True, slots=True)
class Recommended:
    """`best`: what is recommended, which may be the model as it is. `without`: the leanest way that needs no new file.
    `against`: what gains are held against: two options of onnxruntime, or the model as it is where that holds less."""

    best: TriedWay
    without: TriedWay
    against: TriedWay

    @property
    def saved(self) -> float:
        """The share of memory that the best way saves."""
        return 1 - self.best.peak / max(1, self.against.peak)


def is_good(one: TriedWay, first: TriedWay, slower: float) -> bool:
    """Whether it may be recommended."""
    return one.ran and one.outputs.near and (one.ns <= (1 + slower) * first.ns or one is first)


def choose(tried: Sequence[TriedWay], slower: float) -> Recommended:
    """Of ways that were tried, the model as it is first."""
    good = [one for one in tried if is_good(one, tried[0], slower)]
    without = _leaner(tried[0], [one for one in good if not one.way.written])
    against = min((one for one in tried if one.ran and not one.way.written), key=lambda one: one.peak)
    return Recommended(_leaner(without, [one for one in good if one.way.written]), without, against)


def _leaner(so_far: TriedWay, others: Sequence[TriedWay]) -> TriedWay:
    """The leanest of the others, if it holds clearly less."""
    best = min(others, key=lambda one: one.peak, default=so_far)
    return best if best.peak < CLEARLY * so_far.peak else so_far
