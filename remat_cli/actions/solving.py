"""What `solve` does, on values: a subject, a question and limits in, an Answer out.

Invariant: nothing here prints or writes; what a question cannot mean is a Usage before any search begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from remat_cli.actions.pieces_asked import AUTO, EXACT
from remat_cli.actions.questions import Question
from remat_cli.errors import Infeasible, NoPlan, NoSchedule
from remat_cli.formats.planfile import PlanFile
from remat_cli.formats.program import number_program
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer, answer, find_solver
from remat_cli.planning.search.attempt import Policy
from remat_cli.planning.search.find import find
from remat_cli.planning.search.fitting import candidate_so_far
from remat_cli.planning.search.graphs import cheapest
from remat_cli.planning.search.known import cheaper_known, cheapest_known, tried_alone
from remat_cli.planning.search.least_held import least_held
from remat_cli.planning.search.measured import foreseen
from remat_cli.planning.search.proofs import least_needed, of_all_pieces
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.search.untouched import (
    fitting_already,
    held_as_it_is,
    refused,
    share_base,
    too_small,
)
from remat_cli.planning.subjects.fusing import as_fused
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.keeping import is_sound, plan_file
from remat_cli.plans.points import takes_plans
from remat_cli.results.memory import Memory
from remat_cli.saying.refusals import why_not
from remat_cli.units import show_bytes
from solvers.notes import Note
from solvers.problem import Limits, Progress, Solver, Status
from solvers.reductions.views import reduced
from solvers.registry import DEFAULT, METHODS


def ask(
    subject: Subject,
    question: Question,
    limits: Limits,
    memory: Memory | None = None,
    so_far: SoFar | None = None,
    at_hand: int | None = None,
) -> Answer:
    """The answer, whatever it is.

    What is in `memory` is not searched for again. `so_far`: has what is known meanwhile. `at_hand`: the extra cost of a
    plan that answers if this one's is dearer or not found.
    """
    question.check()
    if question.options.get("fusion") == "runtime":
        subject = as_fused(subject)
    budget, known = budget_of(subject, question), so_far or SoFar()
    known.words, known.budgeted = _words(question, subject), question.budget is not None
    known.allows = question.allows
    if question.budget and too_small(subject, budget, question.session):
        return known.worded(refused(subject, budget, question.method, limits, question.session))
    searching = question.minimize == "cost" and question.budget is not None and takes_plans(question.method)
    if searching and (found := fitting_already(subject, budget, question.method, limits, question.session)):
        return replace(found, asked=question.besides())

    if question.whole is not None and question.whole.found:
        known.keep(question.whole.noted(Note(PlanNote.BETTER_WHOLE)))
    earlier = _answering(question, subject, question.earlier) if searching else ()
    request = _request(subject, budget, question, limits, known, at_hand)
    if searching and (first := cheapest_known(request, earlier)):
        known.keep(first)  # whatever comes, there is this
        if first.subject.pieces == subject.pieces:
            request = replace(request, at_hand=first.cost - sum(node.cost for node in first.subject.problem.nodes))
        earlier = (plan_file(first), *earlier)  # with its places, which took time to find
    key = "" if memory is None else memory.key(question.in_json(limits), subject)
    answer = None if memory is None else memory.recalled(key, subject, question.session, limits)
    if answer is None:
        known.begun = True
        found = find(_policy(request, question, searching))
        if searching:
            found = cheaper_known(request, found, _answering(question, subject, question.known))
        answer = known.in_budget(found)
        if memory is not None:
            memory.keep(key, answer, question.method, subject, question.session, limits)
    answer = cheaper_known(request, answer, earlier) if searching else answer
    return replace(_better(answer, question), **known.words)


def _policy(request: PlanRequest, question: Question, searching: bool) -> Policy:
    """How a plan is looked for."""
    subject = request.subject
    if question.minimize == "peak":
        most = _share_allowed(subject, question.max_overhead)
        return least_held(request, find_solver(DEFAULT, {}), most)
    if searching and question.stands and (stands := cheapest_known(request, [question.stands])):
        request = replace(request, solver=_solver(subject, question, stands))
    return cheapest(request)


def _words(question: Question, subject: Subject) -> dict[str, Any]:
    """What answers say of the question. A share is of what the graph that was asked about holds."""
    said = question.budget
    whole = share_base(subject, question.session) if said and said.relative else None
    return {"said": said, "whole": whole, "asked": question.besides()}


def _better(found: Answer, question: Question) -> Answer:
    """The answer found, or that with whole ops, if it is better; in either case as one for all pieces there may be."""
    whole = question.whole
    if whole is not None and whole.found and not (found.found and question.worth(found) <= question.worth(whole)):
        found = whole.noted(Note(PlanNote.BETTER_WHOLE))
    return of_all_pieces(found, bool(question.pieces), question.minimize == "peak")


def _answering(question: Question, subject: Subject, plans: Sequence[PlanFile]) -> tuple[PlanFile, ...]:
    """Those that would answer: of the pieces that are planned, or of any where those are not prescribed."""
    own, exact = question.pieces in (AUTO, EXACT), question.pieces == EXACT
    return tuple(
        plan
        for plan in plans
        if plan.pieces == subject.pieces or (own and not (exact and plan.pieces and not plan.pieces.exact))
    )


def _request(
    subject: Subject, budget: int, question: Question, limits: Limits, known: SoFar, at_hand: int | None = None
) -> PlanRequest:
    if at_hand is None and not known.watched:
        at_hand = _at_hand(subject, budget, question)
    return PlanRequest(
        subject,
        budget,
        question.method,
        _solver(subject, question),
        limits,
        target_of(question.session),
        _reorder(question),
        question.enough,
        known,
        at_hand=at_hand,
    )


def _at_hand(subject: Subject, budget: int, question: Question) -> int | None:
    """What the cheapest of the known plans costs that fit, beyond the model as it is."""
    asked = subject.source.sha256, question.session.name
    plans = [plan for plan in question.known if (plan.model.sha256, plan.session) == asked and plan.budget <= budget]
    return min((plan.cost - plan.baseline_cost for plan in plans if is_sound(plan, subject)), default=None)


def budget_of(subject: Subject, question: Question) -> int:
    """In bytes; without one, what the model holds; for a method that needs none, or of pieces, which may hold more
    than the model, what is never exceeded."""
    if question.budget:
        return bytes_of(question.budget, subject, question.session)
    if METHODS[question.method].needs_budget and subject.whole is None:
        return held_as_it_is(subject, question.session)
    problem = subject.problem
    return 2 * (problem.resident + sum(problem.sizes) + sum(node.workspace for node in problem.nodes))


def budget_to_keep(subject: Subject, question: Question) -> int | None:
    """The budget, where time is to be least; None where memory is."""
    return budget_of(subject, question) if question.minimize == "cost" else None


def bytes_of(budget: Budget, subject: Subject, session: Session) -> int:
    """100% is what the model holds as it is, which with an allocator's rounding may be more than what is live."""
    if not budget.relative:
        return budget.bytes(0)
    asked = budget.bytes(share_base(subject, session))
    return max(asked, held_as_it_is(subject, session)) if budget.amount >= 1 else asked


def _reorder(question: Question) -> bool | None:
    may = METHODS[question.method].may_reorder and question.minimize == "cost"
    return False if question.reorder is None and not may else question.reorder


def _solver(subject: Subject, question: Question, stands: Answer | None = None) -> Solver:
    """The method with what it is told. `stands`: an answer of which the plan is one to begin with."""
    if question.minimize == "peak":
        from solvers.methods.auto.minimize_peak import minimize_peak

        share = _share_allowed(subject, question.max_overhead)
        return partial(minimize_peak, max_overhead=share, candidates=_numbered(subject, question.starts))
    options = dict(question.options)
    if question.budget is None:
        options = {**(METHODS[question.method].unbudgeted or {}), **options}
    plans = (*question.known, *(question.starts if takes_plans(question.method) else ()))
    orders = _numbered(subject, plans)
    if stands is not None and stands.schedule.plan is not None and stands.subject.nodes == subject.nodes:
        orders.append(reduced(subject.problem).shrink(stands.schedule.plan.order()))
    if orders:
        options["candidates"] = tuple(orders)
    return find_solver(question.method, options)


def _numbered(subject: Subject, plans: Sequence[PlanFile]) -> list[tuple[int, ...]]:
    """The plans' orders, of the problem that solvers are asked; those of another graph of the model have none."""
    plans = [plan for plan in plans if (plan.graph, plan.pieces) == (subject.graph_planned, subject.pieces)]
    smaller = reduced(subject.problem) if plans else None
    found = [number_program(plan.program, subject.nodes, subject.values).order() for plan in plans]
    return [smaller.shrink(order) for order in found] if smaller else []


def _share_allowed(subject: Subject, most: float | None) -> float | None:
    """How much longer than each op once a plan may take: of ops in pieces less, as they take longer by themselves."""
    if most is None or subject.whole is None:
        return most
    once = sum(node.cost for node in subject.problem.nodes)
    return max(0.0, (1 + most) * subject.before().cost / max(once, 1) - 1)


def best_by_now(question: Question, known: SoFar, limits: Limits) -> Answer | None:
    """The answer that a search would give if it ended now; the answer itself, if that comes meanwhile."""
    if known.found is not None or (known.refused is not None and known.plan is None):
        return known.found or known.refused
    latest = None if known.order is None else _as_it_runs(*known.order, question, limits, known.plan)
    if known.found is not None:
        return known.found
    plans = [one for one in (latest and known.worded(latest), known.plan) if one is not None and question.allows(one)]
    return min(plans, key=question.worth, default=None)


def _as_it_runs(
    subject: Subject, progress: Progress, question: Question, limits: Limits, stands: Answer | None
) -> Answer | None:
    """The order as an answer, if that fits as it really runs. It gets no places if the plan that stands is as good."""
    request = _request(subject, budget_of(subject, question), question, limits, SoFar(watched=True))
    candidate = candidate_so_far(foreseen(request), progress)
    if candidate is None or (stands is not None and question.minimize == "cost" and stands.cost <= candidate.cost):
        return None
    found = request.answer_of(candidate, progress.seconds, cut=True)
    return found if subject.graph is None else tried_alone(request, found)


def refusal(found: Answer) -> NoSchedule | None:
    """Why the answer has no plan, if it has none."""
    if found.found:
        return None
    kind, least = Infeasible if found.status is Status.INFEASIBLE else NoPlan, least_needed(found)
    return kind(why_not(replace(found, enough=least)), least_peak=least)


def compare_methods(subject: Subject, budget: int, limits: Callable[[str], Limits]) -> Iterator[Answer]:
    """Every method's answer to the same question; `limits`: of each, which hear the same stop."""
    for name in METHODS:
        own = limits(name)
        if own.clock.stopped():
            return
        yield answer(subject, budget, name, find_solver(name, {}), own)


@dataclass(frozen=True, slots=True)
class RelaxationBound:
    """The bound of the linear relaxation, and the cost of the best plan known over it."""

    budget: int
    bound: float
    note: Note  # of which program
    ratio: float | None


def relaxation(subject: Subject, budget: int, limits: Limits, no_stages: bool = False) -> RelaxationBound:
    """How far the linear relaxation is from the optimum (Checkmate, Appendix A)."""
    from solvers.methods.baselines.relaxation import relaxation_bound

    smaller = reduced(subject.problem)
    found = relaxation_bound(smaller.problem, budget, limits.share(0.5), no_stages=no_stages)
    if found is None:
        raise Infeasible(f"the linear relaxation already has no solution within {show_bytes(budget)}")
    bound = found.cost + smaller.fixed_cost
    best = answer(subject, budget, "milp", find_solver("milp", {}), limits)
    ratio = best.schedule.outcome.cost / max(bound, 1) if best.found and best.schedule.outcome else None
    return RelaxationBound(budget, bound, found.note, ratio)
