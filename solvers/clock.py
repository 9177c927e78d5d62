"""The one clock: made where a command begins, handed down to whatever takes time.

Invariant: a clock made from another hears the same stop and never ends later than it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import monotonic


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Clock:
    """Runs from when it is made for so many seconds; `stopped` says that somebody has had enough."""

    seconds: float = 60.0
    stopped: Callable[[], bool] = _never
    begun: float = field(default_factory=lambda: monotonic())

    def elapsed(self) -> float:
        return monotonic() - self.begun

    def left(self) -> float:
        return max(0.0, self.seconds - self.elapsed())

    def over(self) -> bool:
        return self.elapsed() >= self.seconds or self.stopped()

    def within(self, seconds: float) -> Clock:
        """From now on for so many seconds, or to the end of this clock if that comes first."""
        return Clock(max(0.0, min(seconds, self.left())), self.stopped)

    def share(self, part: float) -> Clock:
        """From now on for that part of what is left."""
        return self.within(self.left() * part)

    def unless(self, stopped: Callable[[], bool]) -> Clock:
        """This clock, which hears one more stop."""
        before = self.stopped
        return replace(self, stopped=lambda: before() or stopped())
