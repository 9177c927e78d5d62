"""What something gained for the work that it took: what is new tells most.

Invariant: gains and work are counted, never timed.
"""

from __future__ import annotations

from dataclasses import dataclass

_FADING = 0.7  # of what was gained and spent before, each time that there is more


@dataclass(slots=True)
class Gains:
    gained: float = 0.0
    spent: float = 1.0

    def learn(self, gained: float, spent: float) -> None:
        self.gained, self.spent = _FADING * self.gained + gained, _FADING * self.spent + spent

    @property
    def rate(self) -> float:
        return self.gained / self.spent
