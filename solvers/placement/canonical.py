"""Offsets within a given height, or the proof that there are none: a search of canonical placements.

After google/minimalloc (Moffitt, ASPLOS 2023). A placement of the least sum of offsets is canonical: taken in the order
of offsets, every lifetime lies as low as those before it let it. So the search only ever places a lifetime at its
`lowest`, at or above the last one placed. It gives up a branch where

- a section, which is a moment when more is held than before and after, has more to come than fits above its floor;
- a lifetime that is still to come would fit wholly below the next one: that placement has not the least sum.

What falls apart in time is solved apart, and a part that cannot be placed sends the search back to the placement that
cut it off, past all that was placed elsewhere since.

`search_canonical` fills offsets. A placement's key is its place, then its rank, the preference among equal places; keys
rise along a part.

Invariant: `FITS` comes with offsets in whole units and nothing above the height; `NEVER` is a proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.orders.arrays import Ints
from solvers.placement.lives import Lives

FITS, NEVER, UNKNOWN = 1, 0, -1


class Sections(NamedTuple):
    """Lifetimes by section: `first` is the first that each is in, `last` the one after its last."""

    size: Ints
    first: Ints
    last: Ints
    held: Ints  # by section: the sum of the sizes


def sections(lives: Lives) -> Sections:
    """The sections: just before each end that follows a start, more is held than before or after."""
    starts, ends = np.unique(lives.start), np.unique(lives.end)
    since = np.searchsorted(starts, ends, side="left")  # starts before each end
    cuts = ends[np.diff(since, prepend=0) > 0]
    first = np.searchsorted(cuts, lives.start, side="right")
    last = np.searchsorted(cuts, lives.end, side="right")
    change = np.zeros(len(cuts) + 1, np.int64)
    np.add.at(change, first, lives.size)
    np.add.at(change, last, -lives.size)
    return Sections(lives.size, first, last, np.cumsum(change)[:-1])
