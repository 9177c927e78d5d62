"""The least budget that is known to be enough, where no plan was found within the budget that was asked for.

Invariant: for a model it is what its target counts: the additions of the rewriting and the places in memory are part of
it. So the same order keeps to that budget when it is asked for.
"""

from __future__ import annotations

from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer


def least_needed(answer: Answer) -> int | None:
    """The budget that is enough, as was found, or that the order of an answer without a plan would keep to, in places
    that are found within its time; None where there is no order."""
    if answer.enough is not None:
        return answer.enough
    order, outcome = answer.schedule.result.order, answer.schedule.outcome
    if order is None or outcome is None:
        return None
    if answer.session is None or answer.subject.graph is None:
        return outcome.peak
    target = target_of(answer.session)
    return target.held_by(target.place(answer.candidate.with_order(order), clock=answer.limits.clock.timed()))
