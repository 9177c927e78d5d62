"""Proofs that no plan fits, from the problem that was searched to the budget that was asked for; and the least budget
that is known to be enough.

Invariant: what is said to be needed is needed by every plan that could be made for the request. So where plans of
several problems could answer it, all of them must be proved to need as much. What is known to be enough is what the
target counts, so that the same order keeps to it when it is asked for.
"""

from __future__ import annotations

from dataclasses import replace

from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer
from solvers.problem import Impossible, Result, Status


def judged(found: Answer, budget: int) -> Answer:
    """An answer without a plan as one for that budget: it is impossible only if more than that is proved to be
    needed."""
    result, most = found.schedule.result, budget - found.aside
    order_alone = result.impossible.least if result.impossible and result.impossible.in_order else 0
    needed, result = result.needed or 0, result.without_plan()
    if needed > most:
        result = result.refuted(Impossible(most, needed))
    elif order_alone > most:
        result = result.refuted(Impossible(most, order_alone, in_order=True))
    return replace(found.with_result(result), budget=budget)


def unproved(found: Answer) -> Answer:
    """The answer without a plan to a narrower question, which proves nothing of the one that was asked."""
    return _needing(found, None)


def agreed(found: Answer, other: Answer) -> Answer:
    """The answer without a plan, with what both prove: plans of either problem would have answered."""
    one, two = found.schedule.result.needed, other.schedule.result.needed
    if one is None or two is None:
        return unproved(found)
    if one <= two and one == found.schedule.result.peak_bound:
        return found.given_up()
    return _needing(found, min(one, two))


def of_all_pieces(found: Answer, cuts: bool, by_memory: bool = False) -> Answer:
    """The answer of ops in some pieces, as one for any: what the outputs need no pieces change. `cuts`: whether ops
    might be cut, though in those that were searched none was. `by_memory`: a plan is to hold least, not to cost
    least."""
    if found.session is None or (found.subject.whole is None and not cuts):
        return found
    least = target_of(found.session).held_at_the_end(found.subject) - found.aside
    if not found.found:
        return judged(_needing(found, least), found.budget)
    if not by_memory or found.budget <= least + found.aside:
        return found
    result = replace(_bounded(found, least), status=Status.FEASIBLE)
    return found.with_result(result)


def _needing(found: Answer, least: int | None) -> Answer:
    """The answer with another bound of memory, of which it is not known where it is needed."""
    return found.with_result(_bounded(found, least).without_plan())


def _bounded(found: Answer, least: int | None) -> Result:
    return replace(found.schedule.result, peak_bound=least, peak_node=None, peak_values=())


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
