"""A candidate's model for a session, and what that model holds there.

Invariant: a candidate that comes out has its model and its footprint, or is as it was.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.target import Target
from solvers.clock import Clock
from solvers.placement.largest import Placement


def place(target: Target, candidate: Candidate, budget: int | None = None, clock: Clock | None = None) -> Candidate:
    """The candidate with its model for such a session and the model's footprint; with a budget, as tightly as that
    asks."""
    subject = candidate.subject
    foretold = None if budget is None else target.foretold_within(budget)
    model = candidate.model or target.rewrite(subject, candidate.plan, foretold)
    return replace(candidate, model=model, footprint=target.footprint(model, target.aside(subject), budget, clock))


def place_as_recorded(target: Target, candidate: Candidate, placement: Placement) -> Candidate:
    """The candidate with the places that a plan file gives, if they are sound; without places if not."""
    model = target.rewrite(candidate.subject, candidate.plan)
    footprint = target.as_recorded(model, target.aside(candidate.subject), placement)
    return candidate if footprint is None else replace(candidate, model=model, footprint=footprint)
