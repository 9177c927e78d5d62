"""How the time of one solve is divided: every share in one place, in the order in which the parts come.

A share is of what is left of its part's clock when the part begins, unless it says otherwise. `PartTimes` notes what
each part really took; `solve -v` prints that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

# what the command keeps for the end
PROVING_SHARE = 0.3  # for a certificate, if one is wanted
EVALUATIONS_KEPT = 3  # times that one evaluation of a plan takes: to hold the plan to its word and to write it

# what of the model is in pieces, where that is asked for
PIECES_SHARE = 0.4  # for short searches with each number of pieces
OFFER_SECONDS = 20.0  # at most, after a refusal: for saying what pieces would do

# what of the model is planned
FIRST_GRAPH_SHARE = 0.6  # for plans of the graph that a default session runs; what is left is for the file's own ops

# each search, where models are witnessed and may have to be searched for again
WITNESSED_SHARE = 0.75
WITNESSED_ONCE_SHARE = 0.9  # where what is planned are the kernels that run, which seldom has to be done again
RETRY_PART = 0.5  # of what a search took: with less time left there is no other

# the search itself
SEARCH_SHARE = 0.6  # at least
PLACING_SECONDS = 15.0  # at most, that are kept for placing after it
IDLE_SHARE, IDLE_SECONDS = 0.4, 4.0  # of the time until the last gain, and at least: then a large search has had enough
ONLINE_SEARCH_SHARE = 0.4  # where the allocator places as it is asked, so that orders are searched for afterwards
ORDER_SHARE = 1 / 2  # for the model's own order of first computes, before another one is tried

# while the search goes on
PREMIUM_SHARE, PREMIUM_SECONDS = 0.1, 1.0  # for placing one plan that was met on the way: the longer of the two

# repairs
SETTLING_SHARE = 0.7  # for moving ops about, and for packing longer
SETTLING_ROUND_SHARE = 0.4  # of that, for one time out of several
WALKING_SHARE = 0.3  # for walks: the plan of last resort
LESS_SHARE = 0.5  # for each search for a plan that needs less
NEARER_SHARE = 0.3  # for each time that ops are moved about until a model that was tried fits
LOWERING_SHARE = 0.5  # at the end, for a block that is lower than it must be

# when time is up
LATE_SECONDS = 0.5  # with less left, nothing more is asked
PLACING_GRACE_SECONDS = 2.0  # that a found plan has to be placed
PLACING_GRACE_MOVES = 1_000_000  # the same where work is limited, which time must not decide
REPLACING_SECONDS = 20.0  # to find places again that were found already
TRIAL_SECONDS = 600.0  # at most, for trying one model: a search that is limited by work alone has all the time
TRIAL_GRACE_SECONDS = 5.0  # for trying a model: a process has to start, and there are two short runs


@dataclass(slots=True)
class PartTimes:
    """What each part took so far, in seconds on the wall; a part within another counts for both."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        begun = monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + monotonic() - begun
