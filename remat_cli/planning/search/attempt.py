"""One attempt at a plan, and how it came out: what goes through the stages, and what the next attempt is chosen by.

Invariant: an attempt is a value, and stages change nothing of it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias

from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject


@dataclass(frozen=True, slots=True)
class Attempt:
    """`searched`: what an order is searched for: a subject in which some ops may have to run once, within the limits of
    one search. `asked`: what the order's model must pass. `budget`: what the user asked for, whatever less or more is
    asked for now.

    `known`: an answer whose plan, maybe with its places, is tried instead of searching.
    """

    searched: PlanRequest
    asked: PlanRequest
    budget: int
    known: Answer | None = None

    @property
    def subject(self) -> Subject:
        """The one whose model is made, with all ops that the session fuses."""
        return self.asked.subject if self.known is None else self.known.subject


@dataclass(frozen=True, slots=True)
class Checked:
    """`found`: the answer, with a plan only if that passed. `astray`: else the values around which its model runs other
    kernels than the original; another attempt may run the ops there once."""

    found: Answer
    astray: frozenset[str] = frozenset()


# Yields attempts, hears how each came out, and returns the answer.
Policy: TypeAlias = Generator[Attempt, Checked, Answer]
