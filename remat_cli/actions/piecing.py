"""Ops in pieces as they are asked for: which, and how many, for a budget or for the least memory.

Invariant: what is asked for is done whole, or refused with the value and the op that are in the way. With `exact`
every kind of cut was tried on this machine and gave the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import monotonic

from profiles import cache as caches
from profiles import device as devices
from profiles import survey
from profiles.cache import Cache
from profiles.costs import OpCost
from profiles.survey import Ops
from remat_cli.actions.piece_choice import ToPlan, cheapest, leanest
from remat_cli.actions.pieces_asked import OFF, PiecesAsked
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask, budget_to_keep
from remat_cli.errors import BadInput, Usage, meant
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import STRICT, Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.pieces.finding import FREE, MOST_PIECES, Found, Rules, least_pieces, narrowed_to, untouched, with_one
from remat_cli.pieces.table import Allowed
from remat_cli.pieces.trying import BitTrials
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.proofs import least_needed
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.search.untouched import held_as_it_is, too_small
from remat_cli.planning.subjects.in_pieces import Piecewise, Timed
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.time_plan import OFFER_SECONDS, PIECES_MEASURED_SECONDS, PIECES_SHARE, WHOLE_SHARE
from remat_cli.results.memory import Memory
from remat_cli.units import show_bytes
from solvers.clock import Clock
from solvers.notes import Note
from solvers.problem import Limits


def narrowed(graph: Graph, most: int, exact: bool = False) -> Found:
    """The graph in pieces in which no op makes a value of more than `most` bytes."""
    _check_largest(graph, most)
    found = narrowed_to(graph, most, _rules(exact))
    if left := found.wider(most):
        op = next(op for op in found.made.graph.ops if left[0] in op.writes)
        size = found.made.graph.values[left[0]].bytes
        how = " with the same bits" if exact else ""
        raise BadInput(
            f"{graph.path}: value {left[0]!r}, which {op.op_type} {op.name!r} makes, has {show_bytes(size)} and cannot"
            f" be cut{how} into at most {MOST_PIECES:,} pieces in all; the least that can be asked for is about that"
        )
    return found


def _check_largest(graph: Graph, most: int) -> None:
    """Refuse at once what no cutting reaches: outputs stay whole, and pieces are ops too."""
    made = {name: op for op in graph.ops for name in op.writes}
    wide = max(made.keys() & graph.outputs, key=lambda name: graph.values[name].bytes, default=None)
    if wide is not None and graph.values[wide].bytes > most:
        raise BadInput(
            f"{graph.path}: output {wide!r}, which {made[wide].op_type} {made[wide].name!r} makes, has"
            f" {show_bytes(graph.values[wide].bytes)} and stays whole; no less can be asked for"
        )
    if (count := least_pieces(graph, most)) > MOST_PIECES:
        raise BadInput(
            f"{graph.path}: with no value of more than {show_bytes(most)} there are at least {count:,} pieces, and"
            f" {MOST_PIECES:,} is the most; ask for larger values"
        )


def _rules(exact: bool) -> Rules:
    """With `exact` only ways that give the same bits when they are tried here."""
    allowed = Allowed(exact)
    return Rules(allowed, BitTrials(allowed).same) if exact else Rules(allowed)


def in_pieces(
    subject: Subject, asked: PiecesAsked, question: Question, limits: Limits, so_far: SoFar | None = None
) -> ToPlan:
    """The subject of which to ask the question: with its ops in pieces where that is asked for, and helps.

    Where whole ops may do as well they are planned too, so that pieces never make an answer worse. `so_far` has that a
    search has begun.
    """
    found = _cut_for(subject, asked, question, limits, so_far or SoFar())
    if not found.whole_may_win or found.subject is subject:
        return found
    at_hand = min((plan.cost - plan.baseline_cost for plan in found.plans), default=None)
    limits = limits.share(WHOLE_SHARE)
    begun = replace(question, starts=found.of_whole)
    return replace(found, whole=ask(subject, begun, limits, at_hand=at_hand if question.budget else None))


def _cut_for(subject: Subject, asked: PiecesAsked, question: Question, limits: Limits, so_far: SoFar) -> ToPlan:
    budget, session = budget_to_keep(subject, question), question.session
    if not asked.wanted or (budget is not None and too_small(subject, budget, session)):
        return ToPlan(subject)
    if subject.graph is None:
        raise Usage(f"{subject.path} is a bare problem, which has no ops that could be cut; leave out --pieces")
    if not session.takes_pieces:
        raise Usage("ops in pieces are planned for --runtime remat alone; leave out --runtime stock, or --pieces")
    start = _as_listed(subject.graph, asked)
    if not start.regions and budget is not None and held_as_it_is(subject, session) <= budget:
        return ToPlan(subject)
    so_far.begun = True
    share = limits.share(PIECES_SHARE)
    seconds = min(PIECES_MEASURED_SECONDS, PIECES_SHARE * share.clock.left())
    model = Piecewise(subject, timed_here(subject, seconds, share.clock), share.clock)
    least = model.subject(start) if start.regions else subject
    if asked.how == OFF:
        return ToPlan(least)
    finer = model.rungs(least, partial(model.lowered, start, _rules(asked.exact)))
    if budget is None:
        found = leanest(least, finer, share, question.max_overhead)
    else:
        found = cheapest(least, finer, budget, share)
    return replace(found, whole_may_win=False) if start.regions else found


def in_pieces_for_sweep(subject: Subject, asked: PiecesAsked, session: Session, limits: Limits) -> Subject:
    """The subject of a whole curve: cut for its least budget, since points share what they find and prove."""
    return _cut_for(subject, asked, Question(minimize="peak", session=session), limits, SoFar()).subject


def _as_listed(graph: Graph, asked: PiecesAsked) -> Found:
    """What must be in pieces whatever it brings."""
    found = untouched(graph)
    if asked.largest is not None:
        found = narrowed(graph, asked.largest, asked.exact)
    for one in asked.listed:
        if one.value not in graph.values:
            raise BadInput(f"{graph.path}: there is no value {one.value!r}; {meant(one.value, graph.values)}")
        more = with_one(found, one.value, one.axis, one.pieces)
        if more is None:
            raise BadInput(f"{graph.path}: value {one.value!r} cannot be cut into {one.pieces} pieces; leave it out")
        found = more
    return found


def offered(found: Answer, limits: Limits, memory: Memory | None = None) -> Answer:
    """An answer without a plan, with how little memory the model can run in in pieces, if a walk shows that.

    It is said only where it is less than what is known to be enough for the model with whole ops.
    """
    subject, session = found.subject, found.session or STRICT
    if (
        found.found
        or subject.graph is None
        or subject.pieces
        or not session.takes_pieces
        or found.says(PlanNote.HELD_IN_ANY_CASE)
    ):
        return found
    find = partial(_least_in_pieces, subject, subject.graph, limits)
    least = find() if memory is None else memory.figure("least in pieces", subject, limits, find)
    known = least_needed(found)
    if least is None or (known is not None and least >= known):
        return found
    return found.noted(Note(PlanNote.LESS_IN_PIECES, (show_bytes(least),)))


def _least_in_pieces(subject: Subject, graph: Graph, limits: Limits) -> int | None:
    """What the session holds by the leanest walk over pieces in a short time; None where whole ops do as well."""
    model = Piecewise(subject, clock=limits.clock)
    finer = model.rungs(subject, partial(model.lowered, untouched(graph), FREE))
    best = leanest(subject, finer, Limits(limits.clock.within(OFFER_SECONDS)))
    return None if best.subject is subject else best.plans[0].peak + best.subject.named.aside


def timed_here(whole: Subject, seconds: float, clock: Clock) -> Timed | None:
    """What measures ops in about so many seconds at a time, and none after the clock's end; None where the model's ops
    were not measured here."""
    costs = whole.costed
    if costs is None or not costs.measured or costs.kind != "cpu":
        return None
    device = devices.find("cpu", costs.threads)
    if dict(costs.device) != device.described():
        return None
    cache = Cache(device, caches.folder())

    def timed(ops: Ops) -> Mapping[str, OpCost]:
        if not clock.interrupts():
            deque(survey.measure_missing(ops, device, cache, seconds, monotonic() + clock.left()), maxlen=0)
        return survey.alone(ops, cache, device)

    return timed
