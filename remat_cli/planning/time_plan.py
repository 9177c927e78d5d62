"""Divides the time of one solve: every share is in one place, in the order in which the parts come.

A share is of the time left on its part's clock when the part begins, unless it says otherwise. What commands divide
stands first; `TimePlan` has what a search gives its parts. `PartTimes` records what each part really took; `solve -v`
prints that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic

from solvers.clock import Clock, limited
from solvers.problem import Limits

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

ORDER_SHARE = 1 / 2  # The model's own order of first computes has this much, before another order is tried.
TRIAL_SECONDS = 600.0  # One model is tried for at most this long: a search that is limited by work has no end of time.
LATE_SECONDS = 0.5  # With less left, nothing more is asked.
REPLACING_SECONDS = 20.0  # Places that were found already are found again within this.
PLACING_GRACE_SECONDS = 2.0  # A plan that was found has this much to be placed, once time is up or Ctrl-C came.
PLACING_GRACE_MOVES = 1_500_000  # Where work is limited, which time must not decide, it has so many moves.


@dataclass(frozen=True, slots=True)
class TimePlan:
    """What the parts of one search may take, from now on, of its limits."""

    limits: Limits

    @property
    def left(self) -> float:
        return self.limits.clock.left()

    @property
    def by_work(self) -> bool:
        return self.limits.clock.most is not None

    @property
    def late(self) -> bool:
        """Whether nothing more is to be asked."""
        return self.limits.clock.over() or self.left < LATE_SECONDS

    # The graphs that a target plans.

    def but_for_a_refusal(self, witnessed: bool) -> Limits:
        """All but what a refusal takes, which is more where the leanest plan has to be witnessed."""
        kept = min(15.0, 0.3 * self.left) if witnessed else min(3.0, 0.1 * self.left)
        return self.limits.within(self.left - kept)

    def first_graph(self) -> Limits:
        """Plans of the first graph; the file's own ops have what is left."""
        return self.limits.share(0.75)

    def last_resort(self) -> Limits:
        """The leanest plan has what is left, and a grace where there is none. No work limits it, which would decide
        what it finds."""
        clock = self.limits.clock
        own = Clock(max(self.left, 1.0 + 0.1 * clock.seconds), clock.stopped)
        return replace(self.limits, clock=own)

    # Searches that may have to be done again, where models are witnessed or measured.

    def one_search(self) -> Limits:
        return self.limits.share(0.85)

    def has_another(self, took: float) -> bool:
        """Whether there is time for a search more, where the first took so many seconds."""
        return self.left >= 0.5 * took

    def trial_seconds(self) -> float:
        """A run of a model: a process has to start, and there are two short runs."""
        return min(max(self.left, 5.0), TRIAL_SECONDS)

    # The search itself, before its plan is placed.

    def searching(self) -> Limits:
        return self.limits.share(0.85)

    # Repairs come after the search.

    def simply(self) -> Clock:
        return self.limits.clock.within(0)

    def repairing(self) -> Clock:
        """Making one plan fit, which has a grace of its own at the end of the time. Where work is limited, it has all
        its moves apart: it comes in large steps, and would leave nothing for the search."""
        return limited(moves=PLACING_GRACE_MOVES) if self.by_work else _graced(self.limits.clock)

    def walking(self) -> Clock:
        """Walks, which make the plan of last resort."""
        return self.limits.clock.share(0.3)

    def less(self) -> Limits:
        """One search for a plan that needs less."""
        return self.limits.share(0.5)

    def lowering(self) -> Clock:
        """Making the block lower, at the end."""
        return limited(moves=PLACING_GRACE_MOVES) if self.by_work else self.limits.clock.share(0.5)

    # For the least memory, live bytes are made least first; then what is held.

    def least_live(self) -> Limits:
        return self.limits.share(0.4)

    def falling(self) -> Limits:
        """One request for a budget below what is held: so many moves at least, or all that the limit has, as a request
        for that budget would."""
        return replace(self.limits, clock=self.limits.clock.allot(0.5, 100_000))

    @property
    def late_by_time(self) -> bool:
        """Whether time is up: of work each request for less has its own."""
        return TimePlan(replace(self.limits, clock=self.limits.clock.timed())).late

    @property
    def at_leisure(self) -> bool:
        """Whether the leanest plan is looked for too."""
        return self.left > 20.0

    def cheaper(self) -> Limits:
        """A search for a cheaper plan that holds as little."""
        return self.limits.share(0.3)


def _graced(clock: Clock) -> Clock:
    """The same clock, which ends a grace from now at the earliest, and a grace after somebody has had enough, whenever
    that is: a plan that was found is not lost because its places were being looked for."""
    heard: list[float] = []

    def stopped() -> bool:
        if not heard and clock.stopped():
            heard.append(monotonic())
        return bool(heard) and monotonic() - heard[0] >= PLACING_GRACE_SECONDS

    return replace(clock.within(clock.left()), seconds=max(clock.left(), PLACING_GRACE_SECONDS), stopped=stopped)


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
