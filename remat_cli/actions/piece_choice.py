"""Chooses which ops are to be in pieces, and in how many: from the whole graph to ever finer pieces, by short searches.

Invariant: what is chosen is the coarsest that does about as well as any that was tried, with plans that were found on
the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from remat_cli.actions.pieces_asked import PiecesAsked
from remat_cli.actions.questions import Question
from remat_cli.formats.planfile import PlanFile
from remat_cli.planning.search.answer import Answer, answer, find_solver
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.time_plan import PIECES_SHORTEST_SECONDS, PIECES_WALKS_SHARE
from remat_cli.plans.keeping import plan_file
from solvers.methods.exact.low_walks import lowest
from solvers.orders.bounds import PeakBound, peak_bound, widest_node
from solvers.orders.evict import RULES
from solvers.problem import Limits, Problem, Result, Status
from solvers.reductions.views import reduced
from solvers.registry import DEFAULT
from solvers.schedule import baseline

FINER_SHARE = 0.002  # of the cost, and
LOWER_SHARE = 0.02  # of the least peak: finer pieces that bring less are not worth their ops
ROOM_SHARE = 0.8  # of the budget: pieces of which a walk keeps to it usually leave room for a cheap plan
NEAR_SHARE = 0.92  # of the budget, within which plans are looked for whose places take a little more than is live:
MANY_OPS = 1000  # those of more ops than this
RULE_STEP = 3  # of so many rules of walks one is tried, where they only compare
TRIES = 4  # short searches, each of which has its part of the time for choosing pieces
CHEAP_SHARE = 0.02  # of the model's time: where a plan takes no more in addition, no finer pieces are tried
DEAR_SHARE = 0.3  # of the model's time: plans that take more in addition become much cheaper in a longer search, and
LIKE_TIMES = 1.25  # of the least extra time are then no sign of which pieces are best
NEAR_TIMES = 1.5  # of the extra time that pieces take, and whole ops may still turn out cheaper
NEAR_PEAK_TIMES = 1.25  # of the peak that pieces reach, and whole ops may still turn out leaner;
FAR_PEAK_TIMES = 1.5  # of it, if no bound denies that


@dataclass(frozen=True, slots=True)
class ToPlan:
    """What is to be planned, and plans of it that were found on the way. `whole`: the answer with whole ops, where that
    may turn out to be the better one; `of_whole`: plans of them to begin with."""

    subject: Subject
    plans: tuple[PlanFile, ...] = ()
    of_whole: tuple[PlanFile, ...] = ()
    whole: Answer | None = None
    whole_may_win: bool = False

    def asked(self, question: Question, pieces: PiecesAsked) -> Question:
        """The question with what is known of its answer."""
        earlier = (*question.earlier, *self.plans)
        return replace(question, pieces=pieces.words, earlier=earlier, starts=self.plans, whole=self.whole)


def leanest(start: Subject, finer: Iterator[Subject], limits: Limits, share: float | None = None) -> ToPlan:
    """The coarsest of those whose least peak, as walks reach it, is about the least. `share`: how much longer than the
    model as it was given it may take. Where work is used up, pieces are judged as they stand."""
    best = first = _walked(start, limits.share(PIECES_WALKS_SHARE))
    for subject in finer:
        if limits.clock.interrupts():
            break
        found = _walked(subject, limits.share(PIECES_WALKS_SHARE))
        if _held_in_time(found, share) < (1 - LOWER_SHARE) * _held_in_time(best, share):
            best = found
    least = _held_in_time(best, share)
    times = FAR_PEAK_TIMES if _least(start, peak_bound) <= least else NEAR_PEAK_TIMES
    near = _held_in_time(first, share) <= times * least
    return ToPlan(best.subject, (plan_file(best),), (plan_file(first),), whole_may_win=near)


def _walked(subject: Subject, limits: Limits, enough: int = 0) -> Answer:
    """The order of least peak that walks of a few kinds reach, as soon as it is `enough`. They end where none of them
    meets what they aim at: aiming lower takes ten times as long, and seldom leads further."""

    def walk(problem: Problem, enough: int, limits: Limits) -> Result:
        leanest = lowest(problem, limits, RULES[::RULE_STEP], patient=False, enough=enough).leanest
        assert leanest is not None
        return Result(Status.UNKNOWN, leanest.steps())

    return answer(subject, enough, DEFAULT, walk, limits)


def _peak(walked: Answer) -> int:
    """The peak of the order."""
    assert walked.schedule.outcome is not None
    return walked.schedule.outcome.peak


def _held(walked: Answer) -> int:
    """The same with what kernels take beside it."""
    return _peak(walked) + walked.subject.named.aside


def _keeps_to(budget: int, searched: Answer) -> bool:
    """Whether the leanest order that a search for less has met keeps to the budget all the same."""
    return searched.schedule.outcome is not None and _held(searched) <= budget


def _held_in_time(walked: Answer, share: float | None) -> float:
    """The peak of the order, with what kernels take beside it; with a share also that of the pieces as they stand, each
    if it is in time."""
    outcome, subject = walked.schedule.outcome, walked.subject
    assert outcome is not None
    if share is None:
        return outcome.peak + subject.named.aside
    most, once = (1 + share) * subject.before().cost, baseline(subject.problem)[1]
    return min((one.peak for one in (outcome, once) if one.cost <= most), default=inf) + subject.named.aside


def cheapest(start: Subject, finer: Iterator[Subject], budget: int, limits: Limits) -> ToPlan:
    """The coarsest of those whose plan within the budget costs about the least, as a short search finds it; where
    none finds any, one in which a walk keeps to the budget, or that leaves some room.

    Short searches begin with walks. Around the one that leaves some room all are tried, first those in which a walk
    keeps to the budget, and then finer ones as far as time allows, unless what is found is cheap already.
    """

    def walked(subject: Subject) -> Answer:
        return _walked(subject, limits.share(PIECES_WALKS_SHARE), _room(subject, budget, ROOM_SHARE))

    every, walks = [walked(start)], limits.share(PIECES_WALKS_SHARE)
    while _wants_finer(every, budget, walks) and (subject := next(finer, None)):
        every.append(walked(subject))
    roomy = next((at for at, one in enumerate(every) if _has_room(one, budget)), len(every) - 1)
    found: dict[int, Answer] = {}
    waiting = sorted(range(len(every)), key=lambda at: (not _keeps_to(budget, every[at]), abs(at - roomy)))
    waiting = [at for at in waiting if _least(every[at].subject, peak_bound) <= budget]
    for tries in range(max(TRIES, len(waiting)), 0, -1):
        if not waiting and not _is_cheap(found) and (subject := next(finer, None)):
            waiting.append(len(every))
            every.append(walked(subject))
        if not waiting or limits.clock.over() or (found and limits.clock.left() < PIECES_SHORTEST_SECONDS):
            break
        at = waiting.pop(0)
        one = _planned(every[at], budget, limits.share(1 / tries))
        found |= {at: one} if one.found or _keeps_to(budget, one) else {}
    found = found or {at: one for at, one in enumerate(every) if _keeps_to(budget, one)}
    if not found:
        return ToPlan(every[roomy].subject, whole_may_win=_least(start, peak_bound) <= budget)
    best = _cheapest_of(found)
    near = 0 in found and _more(found[0]) <= NEAR_TIMES * _more(found[best])
    of_whole = (plan_file(found[0]),) if near else ()
    return ToPlan(every[best].subject, (plan_file(found[best]),), of_whole, whole_may_win=near)


def _wants_finer(every: Sequence[Answer], budget: int, limits: Limits) -> bool:
    """Whether the finest leaves little room, or could not keep to the budget in any case."""
    if _least(every[-1].subject, widest_node) > ROOM_SHARE * budget:
        return True
    return not limits.clock.over() and not _has_room(every[-1], budget)


def _has_room(walked: Answer, budget: int) -> bool:
    """Whether the widest op leaves room, and the walk keeps to the budget; of many ops to what leaves room too."""
    subject = walked.subject
    return _least(subject, widest_node) <= ROOM_SHARE * budget and _peak(walked) <= _room(subject, budget, ROOM_SHARE)


def _room(subject: Subject, budget: int, share: float = 1.0) -> int:
    """What is live at most within the budget, or of many ops within a share of it."""
    return int(budget * (share if len(subject.problem.nodes) > MANY_OPS else 1.0)) - subject.named.aside


def _least(subject: Subject, bound: Callable[[Problem], PeakBound]) -> int:
    """What the session holds at least."""
    return bound(subject.problem).peak + subject.named.aside


def _cheapest_of(found: Mapping[int, Answer]) -> int:
    """Which it is; finer pieces have to cost a little less. While plans are dear, of those that cost about as much it
    is the one in which least is held: there a longer search goes furthest."""
    least = min(_more(one) for one in found.values())
    if least > DEAR_SHARE * next(iter(found.values())).subject.before().cost:
        return min(
            (at for at in found if _more(found[at]) <= LIKE_TIMES * least), key=lambda at: (_held(found[at]), at)
        )
    return min(found, key=lambda at: (found[at].cost * (1 + FINER_SHARE * at), at))


def _is_cheap(found: Mapping[int, Answer]) -> bool:
    """Whether finer pieces could hardly cost less."""
    return any(_more(one) <= CHEAP_SHARE * one.subject.before().cost for one in found.values())


def _planned(walked: Answer, budget: int, limits: Limits) -> Answer:
    """What a short search finds within the budget, from a walk on; of many ops with room for places, if the walk leaves
    that."""
    subject, plan = walked.subject, walked.schedule.plan
    assert plan is not None
    room = _room(subject, budget, NEAR_SHARE)
    if _peak(walked) > room:
        room = _room(subject, budget)
    options = {"candidates": (reduced(subject.problem).shrink(plan.order()),)}
    return answer(subject, room, DEFAULT, find_solver(DEFAULT, options), limits)


def _more(found: Answer) -> int:
    """What the plan costs beyond the model as it was given."""
    return found.cost - found.subject.before().cost
