"""Divides the time of one solve: every share is in one place, in the order in which the parts come.

A share is of the time left on its part's clock when the part begins, unless it says otherwise. `PartTimes` records what
each part really took; `solve -v` prints that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

# The command keeps time for the end of the run.
PROVING_SHARE = 0.3  # A certificate has this much, if one is wanted.
ENDING_SHARE = 0.25  # Saying what was found takes at most this part of what went by before: imports and reading.

# Where ops in pieces are asked for, short searches say how many pieces are best.
PIECES_SHARE = 0.4  # All of these searches together have this much.
PIECES_WALKS_SHARE = 0.5  # Of that, the walks of one choice have this much of what is left.
PIECES_SHORTEST_SECONDS = 2.0  # With less left, no other pieces are tried.
PIECES_MEASURED_SECONDS = 10.0  # The ops of one graph in pieces are measured for at most this long.
WHOLE_SHARE = 0.4  # The search with whole ops, which pieces must not come out worse than, has this much.
OFFER_SECONDS = 20.0  # After a refusal, this is the most for saying what pieces would do.

# A default session's graph is planned before the file's own ops are.
FIRST_GRAPH_SHARE = 0.6  # Plans of the first graph have this much; the file's own ops have what is left.
LARGE_GRAPH_SHARE = 0.9  # They have this much where the graph is large: it takes long to make another.

# Where models are witnessed, a search may have to be done again.
WITNESSED_SHARE = 0.75  # Each search has this much of what is left.
WITNESSED_ONCE_SHARE = (
    0.9  # It has this much where the kernels that run are planned: those seldom need a second search.
)
RETRY_PART = 0.5  # There is no second search with less time left than this part of what the first took.

# The search itself comes before its plan is placed.
SEARCH_SHARE = 0.6  # It has at least this much.
PLACING_SECONDS = 15.0  # At most this much is kept for placing after it.
ONLINE_SEARCH_SHARE = (
    0.4  # It has this much where the allocator places as it is asked: orders are searched for after it.
)
ORDER_SHARE = 1 / 2  # The model's own order of first computes has this much, before another order is tried.

# While the search goes on, a plan that was met on the way is placed.
PREMIUM_SHARE, PREMIUM_SECONDS = 0.1, 1.0  # One such plan has the longer of the two, where the search waits for it.
IDLE_SECONDS = 8.0  # Where it does not, the newest plan is placed if for so long nothing newer comes.

# Repairs come after the search.
SETTLING_SHARE = 0.7  # Moving ops about has this much, and so has packing for longer.
SETTLING_ROUND_SHARE = 0.4  # One round of moving ops about, out of several, has this much of that.
NARROWING_ROUND_SHARE = 0.8  # A round in which the search makes a large plan hold less has this much: one is enough.
WALKING_SHARE = 0.3  # Walks, which make the plan of last resort, have this much.
LESS_SHARE = 0.5  # Each search for a plan that needs less has this much.
NEARER_SHARE = 0.3  # Each time that ops are moved about until a model that was tried fits has this much.
LOWERING_SHARE = 0.5  # At the end, making the block lower has this much.

# For the least memory, live bytes are made least first; then what is held.
LEAST_LIVE_SHARE = 0.4  # The search for the least live bytes has this much.
FALLING_SHARE = 0.5  # Each request for a budget below what is held has this much.
FALLING_MOVES = 100_000  # It has so many moves at least, or all that the limit has: as a request for that budget would.
CHEAPER_SHARE = 0.3  # A search for a cheaper plan that holds as little has this much.

# Where there is no plan, the leanest is looked for.
LEAN_KEPT = 3.0, 0.1  # Seconds and a share of the time left: the lesser is kept for it.
LEAN_WITNESSED_KEPT = 15.0, 0.3  # The same where it has to be witnessed.
LEAN_GRACE_SECONDS, LEAN_GRACE_SHARE = 1.0, 0.1  # It has what is left, or this much: seconds and a share of all.
LEAN_AT_LEISURE_SECONDS = 20.0  # After a plan of least memory it is looked for with this much left.

# When time is up, what was begun is finished.
LATE_SECONDS = 0.5  # With less left, nothing more is asked.
PLACING_GRACE_SECONDS = 2.0  # A plan that was found has this much to be placed.
# Where work is limited, which time must not decide, it has so many moves.
PLACING_GRACE_MOVES = 1_000_000
REPLACING_SECONDS = 20.0  # Places that were found already are found again within this.
TRIAL_SECONDS = 600.0  # One model is tried for at most this long: a search that is limited by work has no end of time.
TRIAL_GRACE_SECONDS = 5.0  # A trial has at least this much: a process has to start, and there are two short runs.


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
