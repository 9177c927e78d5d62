"""Turns a request into an answer: takes each attempt through the stages, and the next from the policy that it is told.

A policy (`least_held.py`, `graphs.py`, `measured.py`) says what is tried; the stages say how that comes out:
an order, its places, its checks. Invariant: whatever is tried, no answer has a plan that did not pass all stages.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Checked, Policy
from remat_cli.planning.search.checking import check
from remat_cli.planning.search.ordering import order
from remat_cli.planning.search.placing import place


def find(policy: Policy) -> Answer:
    """The answer that the policy comes to."""
    checked: Checked | None = None
    while True:
        try:
            attempt = next(policy) if checked is None else policy.send(checked)
        except StopIteration as ended:
            answer: Answer = ended.value
            return replace(answer, candidate=replace(answer.candidate, model=None))
        checked = come_out(attempt)


def come_out(attempt: Attempt) -> Checked:
    """How the attempt comes out."""
    return check(attempt, place(attempt, order(attempt)))
