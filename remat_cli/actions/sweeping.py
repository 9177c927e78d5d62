"""What `sweep` does, on values: methods at budgets, as curves whose points share what they find and prove.

Two searches run at a time, the largest budgets first: what is proved there holds for all smaller ones, what they do not
need of their time is left to the smaller, which are harder, and these give their plans back. Methods that do not search
come before those that do, which never come out dearer than any of them.

Invariant: what a search is told depends on those before its pair alone, so that without a time-out only the seed
decides. Where work is limited, each search has a part of it that is the same whatever the others did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from time import process_time

from remat_cli.actions.answering import WholeQuestion, answer_whole
from remat_cli.actions.pieces_asked import WHOLE, PiecesAsked
from remat_cli.actions.piecing import in_pieces_for_sweep
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import bytes_of
from remat_cli.errors import Usage, meant
from remat_cli.model.quantities import Budget, Budgets, Spread
from remat_cli.model.sessions import STRICT, Session
from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.untouched import held_as_it_is
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans import points as curves
from remat_cli.plans.points import Curve, Point, agree, budget_needed, point_of, takes_plans
from remat_cli.results.memory import Memory
from solvers.problem import Enough, Limits, Status
from solvers.registry import DEFAULT, METHODS

PAIR_SEARCHES = 2  # at a time
WHOLE_SHARE = 1 / 3  # of the time or work, for the curve of whole ops, where ops are in pieces
LEAST_PEAK_SHARE = 0.2  # of the time or work, for the least peak there is
HURRIED_PART = 0.5  # of its share: with less time left a point is not as good as it could be
TOLD_PLANS = 3  # known plans that a search is told of


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepQuestion:
    """`pieces`: which ops are cut first; all points have the same, or whole ops where these cost less."""

    budgets: Budgets = (Spread(8),)
    methods: tuple[str, ...] = (DEFAULT,)
    session: Session = STRICT
    pieces: PiecesAsked = WHOLE

    def check(self) -> None:
        if not self.methods:
            raise Usage("methods: say at least one, such as 'auto'")
        if unknown := [name for name in self.methods if name not in METHODS]:
            raise Usage(f"there is no method '{unknown[0]}'; {meant(unknown[0], METHODS)}")
        if len(set(self.methods)) < len(self.methods):
            raise Usage("a method is named twice")


@dataclass(frozen=True, slots=True)
class Task:
    """One method at one budget."""

    budget: int
    method: str


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep has come."""

    done: int
    total: int
    left: float
    what: str


class Sweep:
    """`run` it; `curve` is what is known of it at any time."""

    def __init__(
        self,
        subject: Subject,
        asked: SweepQuestion,
        limits: Limits,
        memory: Memory | None = None,
        report: Callable[[SweepProgress], None] = lambda _: None,
    ) -> None:
        asked.check()
        self.subject, self.asked, self.memory, self.report = subject, asked, memory, report
        self.given_up = False
        self.limits = replace(limits, clock=limits.clock.unless(lambda: self.given_up))
        self.before, self.whole = subject.before(), held_as_it_is(subject, asked.session)
        self.budgets: Sequence[int] = ()
        self.beside: Curve | None = None  # with whole ops, where ops are in pieces
        self.points: list[Point] = []
        self.done = self.total = 0

    def run(self) -> Curve:
        """The curve, as far as time allows; a point that no time was left for knows what the others found."""
        self.subject = in_pieces_for_sweep(self.subject, self.asked.pieces, self.asked.session, self.limits)
        self.budgets = self._spread()
        if self.subject.whole is not None:
            self.beside = self._with_whole_ops(self.subject.whole)
        tasks = [Task(budget, name) for budget in self.budgets for name in self.asked.methods]
        self._go([task for task in tasks if not takes_plans(task.method)], [t for t in tasks if takes_plans(t.method)])
        return self.curve()

    def curve(self) -> Curve:
        asked = [(name, budget) for name in self.asked.methods for budget in self.budgets]
        known = {(point.method, point.budget) for point in self.points}
        blank = (Point(budget=budget, method=name, status=Status.UNKNOWN) for name, budget in asked)
        missing = [point for point in blank if (point.method, point.budget) not in known]
        points = agree([*self.points, *missing], self.limits.gap)  # the least peak's budget may have two by now
        told = {(point.method, point.budget): point for point in points}
        shown = tuple(told[place] for place in asked)
        least = _least(points)
        if self.beside is not None:
            shown = tuple(map(curves.better_whole, shown, self.beside.points))
            least = min((size for size in (least, self.beside.least_peak) if size is not None), default=None)
        return Curve(self.subject, self.before, self.whole, shown, least)

    def _with_whole_ops(self, whole: Subject) -> Curve:
        """The same curve without pieces, so that no point is dearer than there."""
        budgets = tuple(Budget(Fraction(budget)) for budget in self.budgets)
        limits = self._limits_of(WHOLE_SHARE)
        self.limits = self._limits_of(1 - WHOLE_SHARE) if self.limits.clock.most is not None else self.limits
        return Sweep(whole, replace(self.asked, budgets=budgets, pieces=WHOLE), limits, self.memory).run()

    def _spread(self) -> list[int]:
        """In bytes, the largest first."""
        found: set[int] = set()
        for entry in self.asked.budgets:
            if isinstance(entry, Budget):
                found.add(self._bytes(entry))
                continue
            low = self._bytes(entry.low) if entry.low else self._least()
            high = max(low, self._bytes(entry.high) if entry.high else self.whole)
            found.update(low + (high - low) * step // (entry.count - 1) for step in range(entry.count))
        return sorted(found, reverse=True)

    def _bytes(self, budget: Budget) -> int:
        return bytes_of(budget, self.subject, self.asked.session)

    def _least(self) -> int:
        """The least budget that a plan was found for, which is a point to begin with; else what nothing gets below."""
        self._say("the least peak")
        question = Question(minimize="peak", session=self.asked.session)
        began, seconds = process_time(), LEAST_PEAK_SHARE * self.limits.clock.seconds

        def worth(found: Answer) -> bool:
            """What a busy machine cut short says little, and all budgets would hang on it again."""
            by_work = self.limits.clock.most is not None
            return not found.cut or by_work or process_time() - began >= HURRIED_PART * seconds

        found = self._ask(question, self._limits_of(LEAST_PEAK_SHARE), LEAST_PEAK_SHARE, worth)
        if not found.found:
            return min(self.whole, target_of(self.asked.session).needed_at_least(self.subject))
        self.points.append(replace(point_of(found), status=Status.FEASIBLE))  # its peak may be optimal, not its cost
        return min(self.whole, found.budget)

    def _go(self, quick: Sequence[Task], searches: Sequence[Task]) -> None:
        """Two at a time; what time a pair does not take is the others'."""
        pairs = [*_in_pairs(quick), *_in_pairs(searches)]
        self.total = len(quick) + len(searches)
        with ThreadPoolExecutor(PAIR_SEARCHES) as lanes:
            try:
                for place, pair in enumerate(pairs):
                    known = tuple(self.points)
                    self._say(f"{pair[0].method} at {pair[0].budget / self.whole:.0%}")
                    self.points += list(lanes.map(partial(self._point, left=len(pairs) - place, known=known), pair))
                    self.done += len(pair)
            finally:
                self.given_up = True

    def _point(self, task: Task, left: int, known: tuple[Point, ...]) -> Point:
        """One point of the curve, for which there is as much time as for each of the pairs that are left."""
        part = 1 / left if self.limits.clock.most is None else (1 - LEAST_PEAK_SHARE) / self.total
        limits = self._limits_of(part)
        nothing = Point(budget=task.budget, method=task.method, status=Status.UNKNOWN)
        if limits.clock.over() or _is_settled(task, known, limits.gap):
            return nothing
        floor = curves.known_bound(known, task.budget)
        plans = curves.known_plans(known, task.budget, task.method) if takes_plans(task.method) else []
        question = Question(
            budget=Budget(Fraction(task.budget)),
            method=task.method,
            known=tuple(point.plan for point in plans[:TOLD_PLANS] if point.plan),
            session=self.asked.session,
            enough=None if floor is None else Enough(cost=floor * (1 + limits.gap)),
        )
        return point_of(self._ask(question, limits, PAIR_SEARCHES / max(self.total, PAIR_SEARCHES)))

    def _limits_of(self, part: float) -> Limits:
        """Of the time that is left, or of all the work: how much others have done by now is not the same each time."""
        clock = self.limits.clock
        return replace(self.limits, clock=clock.share(part) if clock.most is None else clock.apart(part))

    def _ask(
        self, question: Question, limits: Limits, share: float, worth: Callable[[Answer], bool] = lambda _: True
    ) -> Answer:
        """The answer kept before, if it had as large a share of the time; what had much less of it is not kept."""
        seconds = share * self.limits.clock.seconds
        hurried = limits.clock.left() < HURRIED_PART * seconds
        memory = None if self.memory is None or hurried else replace(self.memory, seconds=seconds, worth=worth)
        asked = WholeQuestion(subject=self.subject, question=question, limits=limits, memory=memory, offers=False)
        return answer_whole(asked).found

    def _say(self, what: str) -> None:
        self.report(SweepProgress(self.done, max(self.total, 1), self.limits.clock.left(), what))


def _in_pairs(tasks: Sequence[Task]) -> list[Sequence[Task]]:
    return [tasks[place : place + PAIR_SEARCHES] for place in range(0, len(tasks), PAIR_SEARCHES)]


def _is_settled(task: Task, known: Sequence[Point], gap: float) -> bool:
    """Whether others have found the best that there is, or proved that there is nothing."""
    if curves.known_impossible(known, task.budget, task.method):
        return True
    floor = curves.known_bound(known, task.budget)
    best = next(iter(curves.known_plans(known, task.budget, task.method)), None) if takes_plans(task.method) else None
    return floor is not None and best is not None and best.cost is not None and best.cost <= floor * (1 + gap)


def _least(points: Iterable[Point]) -> int | None:
    """The least budget that one of the plans keeps to, or that a search without a plan knows to be enough."""
    enough = [budget_needed(point.plan) if point.plan else point.least_peak for point in points]
    return min((size for size in enough if size is not None), default=None)
