"""Attempts where the measured memory of models differs from the prediction: the budget asked for follows the
measurement. After a plan whose kernels go astray, the ops around that place run once.

Invariant: an answer that found a plan is of a model that was run and held no more than the budget, in its later runs
too. The set of ops that run once grows from attempt to attempt, so that there is an end; a note names them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from remat_cli.model.problem_of import as_it_stands
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Policy
from remat_cli.planning.search.checking import names
from remat_cli.planning.search.proofs import judged, unproved
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.units import show_bytes
from solvers.notes import Note
from solvers.problem import Result, Status
from solvers.schedule import Schedule, baseline

LESS_PART = 200  # one over this is the part of the budget asked for less, besides the measured excess
SPARE_PART = 50  # one over this is the part of the budget that, left unused, is worth another search


def of_graph(request: PlanRequest) -> Policy:
    """A plan of the request's graph, measured where predictions are known to be off."""
    if request.target.tries_plans(request.subject):
        return measured(request)
    return witnessed(request, request.budget)


def measured(request: PlanRequest) -> Policy:
    """A plan whose model was measured to hold no more than the budget.

    Each search is for as much less as the model of the last plan held too much. Where that left memory unused it is for
    as much more, as long as that leads to a cheaper plan. Where none was left of what was asked for, the plan stands in
    that was seen to fit while the searches went on. The leanest plan is the same whatever is asked for. No search is
    begun where what is held at the end of a run is over.
    """
    if request.target.held_at_the_end(request.subject) > request.budget and not request.leanly:
        return _as_asked(request, unsearched(request))
    best, before, time = None, request.so_far.plan, request.time
    budget = foreseen(request).budget
    while True:
        begun = request.limits.clock.elapsed()
        found = yield from witnessed(replace(request, budget=budget), request.budget)
        over = _over(request, found) if found.found else 0
        better = found.found and over <= 0 and (best is None or found.cost < best.cost)
        if better:
            best = found
        if not found.found or (best is not None and (not better or -over <= request.budget // SPARE_PART)):
            break
        if request.leanly or request.late or not time.has_another(request.limits.clock.elapsed() - begun):
            break
        budget -= over if better else over + request.budget // LESS_PART
    told = request.so_far.plan
    if told is not None and told is not before and (best is None or told.cost < best.cost):
        best = told.noted(Note(PlanNote.MET_EARLIER))
    return _as_asked(request, found if best is None else best)


def unsearched(request: PlanRequest) -> Answer:
    """The answer without a plan before any search, with the model as it is as the nearest one."""
    plan, outcome = request.subject.as_it_is()
    schedule = Schedule(Result(Status.UNKNOWN, plan.order()), plan, outcome)
    return request.answer_of(Candidate(request.subject, schedule), request.limits.clock.elapsed(), cut=False)


def _over(request: PlanRequest, found: Answer) -> int:
    """How far the measured memory of the plan's model exceeds the budget."""
    assert found.promise is not None
    return request.target.counted(found.promise) - request.budget


def _as_asked(request: PlanRequest, found: Answer) -> Answer:
    """The answer as one for the budget itself, without its plan if that is over.

    The search's proofs are about predicted memory, so they are dropped. The bytes held at the end of every run are a
    bound whatever optimizers do.
    """
    over = _over(request, found) if found.found else 0
    fits = found.found and over <= 0
    result, least = found.schedule.result, request.target.held_at_the_end(request.subject)
    notes = result.notes
    if least > request.budget:
        notes = (*notes, Note(PlanNote.HELD_AT_THE_END))
    elif not fits and not found.says(PlanNote.UNTRIED):
        besides = f", and the model of the best plan {show_bytes(request.budget + over)}" if over > 0 else ""
        notes = (*notes, Note(request.target.differs, (max(request.subject.behaviour.peaks or ()), besides)))
    result = replace(result, status=Status.FEASIBLE) if fits else result.without_plan()
    result = replace(result, notes=notes, bound=None, bound_any_order=None, grounds=())
    result = replace(result, peak_bound=least - found.aside, peak_node=None, peak_values=())
    found = found.with_result(result)
    found = replace(found, budget=request.budget) if fits else judged(found, request.budget)
    return replace(found, limits=request.limits, seconds=request.limits.clock.elapsed())


def foreseen(request: PlanRequest) -> PlanRequest:
    """The request with a larger budget where the original was measured to hold less than predicted, because fused
    values are not held.

    Where the graph's ops are the kernels that run, a plan's prediction is better than that of the original's own order.
    """
    subject = request.subject
    if subject.behaviour.peaks is None or subject.behaviour.optimized:
        return request
    before = as_it_stands(request.target.in_units(subject.as_given.problem))
    less = baseline(before)[1].peak - max(subject.behaviour.peaks)
    return replace(request, budget=request.budget + max(0, less))


def witnessed(asked: PlanRequest, budget: int) -> Policy:
    """A plan that fits and passes. `budget`: the one that the user asked for."""
    if not asked.target.bears_witness(asked.subject):
        return (yield Attempt(asked, asked, budget)).found
    once = set[str]()
    while True:
        searched = replace(asked, subject=run_once(asked.subject, once), limits=asked.time.one_search())
        checked = yield Attempt(searched, asked, budget)
        if not checked.astray or searched.late or len(once) == len(asked.subject.nodes):
            return _as_of(asked.subject, checked.found, once)
        once = more_once(asked.subject, checked.astray, once)


def more_once(subject: Subject, values: Collection[str], once: Collection[str]) -> set[str]:
    """These ops, and the ops that make any of the values. Where those are in the set already, all ops around them
    too."""
    assert subject.graph is not None
    wanted = set(values)
    found = {op.name for op in subject.graph.ops if wanted.intersection((*op.writes, *op.reads))}
    if not found <= set(once):
        return found.union(once)
    near = {name for op in subject.graph.ops if op.name in found.union(once) for name in (*op.reads, *op.writes)}
    wider = {op.name for op in subject.graph.ops if near.intersection((*op.reads, *op.writes))}
    return wider if found and not wider <= set(once) else set(subject.nodes)


def run_once(subject: Subject, once: Collection[str]) -> Subject:
    """The subject in which these ops are never computed twice."""
    named = zip(subject.nodes, subject.problem.nodes, strict=True)
    nodes = tuple(replace(node, once=node.once or name in once) for name, node in named)
    return subject.solving(replace(subject.problem, nodes=nodes))


def _as_of(subject: Subject, found: Answer, once: Collection[str]) -> Answer:
    """The answer as one about the subject that was asked about."""
    if not once:
        return found
    found = found if found.found else unproved(found)
    return found.noted(Note(PlanNote.RUN_ONCE, (names(once),))).about(subject)
