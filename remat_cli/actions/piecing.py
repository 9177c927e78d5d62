"""Ops in pieces as they are asked for: which, and how many, for a budget or for the least memory.

Invariant: what is asked for is done whole, or refused with the value and the op that are in the way. With `exact`
every kind of cut was tried on this machine and gave the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from remat_cli.actions.piece_timing import timed_here
from remat_cli.actions.pieces_asked import OFF, PiecesAsked
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask, budget_to_keep
from remat_cli.errors import BadInput, Usage, meant
from remat_cli.formats.planfile import PlanFile
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import STRICT, Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.pieces.finding import FREE, MOST_PIECES, Found, Rules, least_pieces, narrowed_to, untouched, with_one
from remat_cli.pieces.table import Allowed
from remat_cli.pieces.trying import BitTrials
from remat_cli.planning.plans.record import plan_file
from remat_cli.planning.search.answer import Answer, answer, find_solver
from remat_cli.planning.search.least import least_needed
from remat_cli.planning.search.untouched import held_as_it_is, too_small
from remat_cli.planning.subjects.in_pieces import Piecewise
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.kinds import target_of
from remat_cli.planning.time_plan import OFFER_SECONDS, PIECES_SHARE, WHOLE_SHARE
from remat_cli.results.memory import Memory
from remat_cli.saying.units import show_bytes
from solvers.methods.exact.low_walks import lowest
from solvers.notes import Note
from solvers.orders.bounds import peak_bound, widest_node
from solvers.orders.evict import RULES
from solvers.problem import Limits, Problem, Result, Status
from solvers.registry import DEFAULT
from solvers.schedule import baseline

FINER_SHARE = 0.002  # of the cost, and
LOWER_SHARE = 0.02  # of the least peak: finer pieces that bring less are not worth their ops
ROOM_SHARE = 0.8  # of the budget: pieces whose bound is below it usually leave room for a cheap plan
NEAR_SHARE = 0.95  # of the budget, within which plans are looked for whose places take a little more than is live:
MANY_OPS = 1000  # those of more ops than this
RULE_STEP = 5  # of so many rules of walks one is tried, where they only compare: all of them take as long as a plan
WALKS_SHARE = 0.5  # of the time left for choosing pieces, for the walks of one choice
NEAR_TIMES = 1.5  # of the extra time that pieces take, and whole ops may still turn out cheaper
NEAR_PEAK_TIMES = 1.25  # of the peak that pieces reach, and whole ops may still turn out leaner
MEASURING_SECONDS = 10.0  # at most, for the ops of one graph in pieces
SHORTEST_SECONDS = 2.0  # with less left no other pieces are tried


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


@dataclass(frozen=True, slots=True)
class ToPlan:
    """What is to be planned, and plans of it that were found on the way. `whole`: the answer with whole ops, where that
    may turn out to be the better one."""

    subject: Subject
    plans: tuple[PlanFile, ...] = ()
    whole: Answer | None = None
    whole_may_win: bool = False

    def asked(self, question: Question, pieces: PiecesAsked) -> Question:
        """The question with what is known of its answer."""
        earlier = (*question.earlier, *self.plans)
        return replace(question, pieces=pieces.words, earlier=earlier, starts=self.plans, whole=self.whole)


def in_pieces(subject: Subject, asked: PiecesAsked, question: Question, limits: Limits) -> ToPlan:
    """The subject of which to ask the question: with its ops in pieces where that is asked for, and helps.

    Where whole ops may do as well they are planned too, so that pieces never make an answer worse.
    """
    found = _cut_for(subject, asked, question, limits)
    if not found.whole_may_win or found.subject is subject:
        return found
    return replace(found, whole=ask(subject, question, limits.share(WHOLE_SHARE).silent()))


def _cut_for(subject: Subject, asked: PiecesAsked, question: Question, limits: Limits) -> ToPlan:
    budget, session = budget_to_keep(subject, question), question.session
    if not asked.wanted or (budget is not None and too_small(subject, budget, session)):
        return ToPlan(subject)
    if subject.graph is None:
        raise Usage(f"{subject.path} is a bare problem, which has no ops that could be cut; leave out --pieces")
    if session.robust:
        raise Usage("ops in pieces are planned for strict sessions; leave out --session default, or --pieces")
    start = _as_listed(subject.graph, asked)
    if not start.regions and budget is not None and held_as_it_is(subject, session) <= budget:
        return ToPlan(subject)
    model = Piecewise(subject, timed_here(subject, min(MEASURING_SECONDS, PIECES_SHARE**2 * limits.clock.left())))
    least = model.subject(start) if start.regions else subject
    if asked.how == OFF:
        return ToPlan(least)
    share = limits.share(PIECES_SHARE).silent()
    finer = model.rungs(least, partial(model.lowered, start, _rules(asked.exact)))
    if budget is None:
        found = _leanest(least, finer, share, question.max_overhead)
    else:
        room = budget - target_of(session).aside(subject)
        found = _cheapest(least, finer, room, share)
        if not found.plans:
            found = _leaner(found, finer, room, limits.share(PIECES_SHARE).silent())
    return replace(found, whole_may_win=False) if start.regions else found


def in_pieces_for_sweep(subject: Subject, asked: PiecesAsked, session: Session, limits: Limits) -> Subject:
    """The subject of a whole curve: cut for its least budget, since points share what they find and prove."""
    return _cut_for(subject, asked, Question(minimize="peak", session=session), limits).subject


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


def _leanest(start: Subject, finer: Iterator[Subject], limits: Limits, share: float | None = None) -> ToPlan:
    """The coarsest of those whose least peak, as walks reach it, is about the least. `share`: how much longer than the
    model as it was given it may take. Where work is used up, pieces are judged as they stand."""
    best = first = _walked(start, limits.share(WALKS_SHARE))
    for subject in finer:
        if limits.clock.interrupts():
            break
        found = _walked(subject, limits.share(WALKS_SHARE), _peak(best))
        if _peak_in_time(found, share) < (1 - LOWER_SHARE) * _peak_in_time(best, share):
            best = found
    near = _peak_in_time(first, share) <= NEAR_PEAK_TIMES * _peak_in_time(best, share)
    return ToPlan(best.subject, (plan_file(best),), whole_may_win=near)


def _walked(subject: Subject, limits: Limits, below: int | None = None) -> Answer:
    """The order of least peak that walks of a few kinds reach; they aim `below` so many bytes at once, if that is
    given."""

    def walk(problem: Problem, _: int, limits: Limits) -> Result:
        leanest = lowest(problem, limits, RULES[::RULE_STEP], below).leanest
        assert leanest is not None
        return Result(Status.UNKNOWN, leanest.steps())

    return answer(subject, 0, DEFAULT, walk, limits.silent())


def _peak(walked: Answer) -> int:
    """The peak of the order."""
    assert walked.schedule.outcome is not None
    return walked.schedule.outcome.peak


def _peak_in_time(walked: Answer, share: float | None) -> float:
    """With a share the peak of the order, or of the pieces as they stand, if they are in time."""
    if share is None:
        return _peak(walked)
    outcome, subject = walked.schedule.outcome, walked.subject
    assert outcome is not None
    most, once = (1 + share) * subject.before().cost, baseline(subject.problem)[1]
    return min((one.peak for one in (outcome, once) if one.cost <= most), default=inf)


def _cheapest(start: Subject, finer: Iterator[Subject], budget: int, limits: Limits) -> ToPlan:
    """The coarsest of those whose plan within the budget costs about the least, as a short search finds it; where
    none finds any, the one that leaves some room."""
    every = [start]
    while widest_node(every[-1].problem).peak > ROOM_SHARE * budget and (subject := next(finer, None)):
        every.append(subject)
    bounds = [peak_bound(subject.problem).peak for subject in every]
    roomy = len(every) - 1
    fitting = [at for at, bound in enumerate(bounds) if bound <= budget]
    found: dict[int, Answer] = {}
    for done, at in enumerate(sorted(fitting, key=lambda at: abs(at - roomy))):
        if done and (limits.clock.over() or limits.clock.left() < SHORTEST_SECONDS):
            break
        one = _planned(every[at], bounds[at], budget, limits.share(1 / (len(fitting) - done)))
        found |= {at: one} if one.found else {}
    if not found:
        return ToPlan(every[roomy], whole_may_win=bounds[0] <= budget)
    best = min(found, key=lambda at: (found[at].cost * (1 + FINER_SHARE * at), at))
    near = 0 in found and _more(found[0]) <= NEAR_TIMES * _more(found[best])
    return ToPlan(every[best], (plan_file(found[best]),), whole_may_win=near)


def _planned(subject: Subject, least: int, budget: int, limits: Limits) -> Answer:
    """What a short search finds within the budget; of many ops with room for places, where the least that it needs
    allows."""
    room = int(NEAR_SHARE * budget)
    roomy = len(subject.problem.nodes) > MANY_OPS and least <= room
    return answer(subject, room if roomy else budget, DEFAULT, find_solver(DEFAULT, {}), limits)


def _more(found: Answer) -> int:
    """What the plan costs beyond the model as it was given."""
    return found.cost - found.subject.before().cost


def _leaner(unplanned: ToPlan, finer: Iterator[Subject], budget: int, limits: Limits) -> ToPlan:
    """Where no plan was found of pieces that should have room: the coarsest in which a walk keeps to the budget, with
    the walk, and what a short search finds, as plans to begin with."""
    if peak_bound(unplanned.subject.problem).peak > budget:
        return unplanned
    for subject in (unplanned.subject, *finer):
        walked = _walked(subject, limits.share(WALKS_SHARE))
        if _peak(walked) <= budget:
            found = _planned(subject, _peak(walked), budget, limits)
            plans = (*([found] if found.found else []), walked)
            return replace(unplanned, subject=subject, plans=tuple(map(plan_file, plans)))
        if limits.clock.interrupts():
            break
    return unplanned


def offered(found: Answer, limits: Limits, memory: Memory | None = None) -> Answer:
    """An answer without a plan, with how little memory the model can run in in pieces, if a walk shows that.

    It is said only where it is less than what is known to be enough for the model with whole ops.
    """
    subject, session = found.subject, found.session or STRICT
    if (
        found.found
        or subject.graph is None
        or subject.pieces
        or session.robust
        or found.says(PlanNote.HELD_IN_ANY_CASE)
    ):
        return found
    find = partial(_least_in_pieces, subject, subject.graph, limits)
    least = find() if memory is None else memory.figure("least in pieces", subject, limits, find)
    known = least_needed(found)
    if least is None or (known is not None and least + found.aside >= known):
        return found
    return found.noted(Note(PlanNote.LESS_IN_PIECES, (show_bytes(least + found.aside),)))


def _least_in_pieces(subject: Subject, graph: Graph, limits: Limits) -> int | None:
    """The least peak that walks over pieces reach in a short time; None where whole ops do as well."""
    model = Piecewise(subject)
    finer = model.rungs(subject, partial(model.lowered, untouched(graph), FREE))
    best = _leanest(subject, finer, Limits(limits.clock.within(OFFER_SECONDS)))
    return None if best.subject is subject else best.plans[0].peak
