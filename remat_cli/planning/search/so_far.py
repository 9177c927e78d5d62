"""What is known of an answer while it is looked for: whoever asked looks when it likes, from any thread.

Invariant: each field is set as a whole; a plan in it fits as it really runs, and its answer says what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from remat_cli.events import EventQueue
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.time_plan import PartTimes
from solvers.problem import Progress


@dataclass(slots=True)
class SoFar:
    """`begun`: a search has begun, which no answer at hand made needless. `order`: the latest that the search reported,
    with what it is an order of. `plan`: the latest that is known to fit; `refused`: the answer without a plan, while a
    budget that is enough is still looked for. `found`: the answer, of which only the proof of its bounds follows.

    `allows`: whether a plan keeps to what was asked besides a budget: one that takes longer than may be is no answer.
    `words`: what answers say of the question. `budgeted`: whether a budget was asked for; else a plan's answer has what
    the plan holds. `times`: what each part took.

    `watched`: whoever asked may not wait until the end, so that a plan is wanted early, whatever is at hand. `events`:
    what the search says, where somebody reads it.
    """

    begun: bool = False
    order: tuple[Subject, Progress] | None = None
    plan: Answer | None = None
    refused: Answer | None = None
    found: Answer | None = None
    allows: Callable[[Answer], bool] = lambda _: True
    words: Mapping[str, Any] = field(default_factory=dict)
    budgeted: bool = True
    times: PartTimes = field(default_factory=PartTimes)
    watched: bool = False
    events: EventQueue[Progress] | None = None

    def say(self, progress: Progress) -> None:
        if self.events is not None:
            self.events.say(progress)

    def keep(self, found: Answer) -> None:
        """Keep a plan that fits, if it is allowed, or the answer without one."""
        if found.found and self.allows(found):
            self.plan = self.worded(found)
        elif not found.found:
            self.refused = self.worded(found)

    def worded(self, found: Answer) -> Answer:
        """The answer as one to the question."""
        return replace(self.in_budget(found), **self.words)

    def in_budget(self, found: Answer) -> Answer:
        """The answer with the budget that its plan keeps to, where none was asked for."""
        return found if self.budgeted or not found.found else replace(found, budget=found.held)
