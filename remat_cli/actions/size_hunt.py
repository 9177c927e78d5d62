"""The hunt for the largest size that has a plan: between what is known to fit and what is proved not to, by halves.

Invariant: that a size fits is the word of a plan for that very size; that it does not is a proof, and "unknown" where
there is neither. What fits is taken to hold for every smaller size, because each question is expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from remat_cli.actions.answering import WholeQuestion, answer_whole
from remat_cli.actions.pieces_asked import WHOLE, PiecesAsked
from remat_cli.actions.questions import Question
from remat_cli.actions.scaling import At
from remat_cli.errors import Infeasible, NoPlan, NoSchedule, RematError, Usage, meant
from remat_cli.formats.planfile import PlanFile
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import STRICT, Session
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import target_of
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.plans.keeping import plan_file
from remat_cli.plans.planned import Planned
from remat_cli.plans.points import takes_plans
from remat_cli.plans.sizes import Largest, Tried
from remat_cli.results.memory import Memory
from remat_cli.saying.refusals import gradients_held
from remat_cli.units import show_bytes
from solvers.problem import Enough, Limits, Status
from solvers.registry import DEFAULT, METHODS

LARGEST_SIZE = 2**30  # no size is larger
HALVING_QUESTIONS = 3  # after this many questions the middle is asked, however straight the line looks
QUICK_SECONDS = 15.0  # at most, for a method that does not search
EARLY_SHARE = 0.25  # of the time, for the methods that do not search, and for a first plan
SEARCH_SHARE = 0.4  # of the time left for one search is the most, if many are to come
BASELINES = ("checkpoint-all", "ap-sqrt", "ap-greedy", "linearized-greedy")


def last(holds: Callable[[int], bool], guess: int) -> int:
    """The last size, from 1 on, for which the condition holds; 0 where it holds for none. `guess`: a size near the
    answer."""
    step, low, high = 1, 0, LARGEST_SIZE
    at = guess
    while True:  # The interval grows outwards from the guess until it contains the answer.
        if holds(at):
            low, at = at, at + step
            if at >= LARGEST_SIZE:
                return low
        else:
            high, at = at, max(1, at - step)
        step *= 2
        if (low and high < LARGEST_SIZE) or high == 1:
            break
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def last_within(taken: Callable[[int], int | None], room: int) -> int:
    """The last size, from 1 on, that takes no more than the room; 0 where even size 1 takes more. `taken` answers None
    for a size that takes more than can be measured.

    The bytes taken grow about linearly, or piecewise linearly. So the next size to ask is where the line through the
    neighbouring sizes meets the room.
    """
    known: dict[int, int] = {}
    low, high, at, turn = 0, LARGEST_SIZE, 1, 0
    while True:
        value = taken(at)
        if value is not None:
            known[at] = value
        low, high = (at, high) if value is not None and value <= room else (low, at)
        if high - low <= 1:
            return low
        turn += high < LARGEST_SIZE
        wanted = _meeting(known, low, high, room) if turn % HALVING_QUESTIONS else (low + high) // 2
        at = min(max(wanted, low + 1), high - 1)


def _meeting(known: dict[int, int], low: int, high: int, room: int) -> int:
    """Where the line through `low` and its neighbour above, or else below, meets the room."""
    other = high if high in known else max((size for size in known if size < low), default=None)
    if other is None:
        return 2 * low
    rise = (known[other] - known[low]) // (other - low)
    return low + (room - known[low]) // rise if rise > 0 else 2 * low


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeQuestion:
    """`share`: how much longer a step may take; None: by one more forward pass. Sizes are multiples of `step`.

    `pieces`: which ops may be cut. What is proved of whole ops then says nothing of sizes that do not fit.
    """

    budget: Budget
    method: str = DEFAULT
    share: float | None = None
    baselines: tuple[str, ...] = BASELINES
    step: int = 1
    session: Session = STRICT
    pieces: PiecesAsked = WHOLE

    def check(self) -> None:
        if self.pieces.wanted and not self.session.takes_pieces:
            raise Usage("ops in pieces are planned for --runtime remat alone; leave out --runtime stock, or --pieces")
        if unknown := [name for name in (self.method, *self.baselines) if name not in METHODS]:
            raise Usage(f"there is no method '{unknown[0]}'; {meant(unknown[0], METHODS)}")
        if self.budget.relative:
            raise Usage("say how much memory there is in bytes: --budget 16GB; a share of what a size takes is none")

    def allowed(self, subject: Subject) -> int:
        """What a step of this size may cost: equations (9) and (10) of the Checkmate paper, or a share."""
        before = subject.before().cost
        if self.share is not None:
            return int(before * (1 + self.share))
        return before + sum(node.cost for node in subject.problem.nodes if not node.backward)


@dataclass(slots=True)
class SizeHunt:
    """Sizes here are counted in steps. `reached`: how far the methods come that do not search; `note`: what is to be
    said of its plan; `hint`: a plan of some size, made before this hunt. `doing` hears of what is being tried, `keep`
    of the largest known while it still goes on."""

    make: At
    asked: SizeQuestion
    limits: Limits
    memory: Memory | None
    doing: Callable[[str], None]
    keep: Callable[[Largest], None]
    reached: Mapping[str, int | None] = field(default_factory=dict)
    note: str | None = None
    hint: Planned | None = None
    best: Tried | None = None
    impossible: Tried | None = None
    tried: dict[int, Tried] = field(default_factory=dict)

    @property
    def budget(self) -> int:
        return self.asked.budget.bytes(0)

    def at(self, size: int) -> Subject:
        return self.make(size * self.asked.step)

    def as_it_stands(self) -> int:
        """The last size that fits without recomputation."""

        def taken(size: int) -> int | None:
            try:
                return self.at(size).before().peak
            except RematError:
                if size == 1:
                    raise
                return None

        return last_within(taken, self.budget)

    def run(self) -> None:
        """How far the methods come that do not search, None where time ends first; and from there on the search."""
        early, stands = self.limits.share(EARLY_SHARE), self.as_it_stands()
        self.reached = {name: self._reach(name, early, stands) for name in self.asked.baselines}
        self._search(max((size for size in self.reached.values() if size), default=stands))

    def _reach(self, method: str, limits: Limits, stands: int) -> int | None:
        def fits(size: int) -> bool:
            return self._judge(size, method, _quick(limits)).verdict == "fits"

        found = last(fits, max(1, stands))
        return None if limits.clock.over() else found

    def _search(self, known: int) -> None:
        """Halve what lies between the largest size that fits and the least that is proved not to."""
        low, high = max(known, 1), 1 + last_within(self._least, self.budget)
        if high <= 1 or not self._holds(low, self.limits.share(EARLY_SHARE)):
            low = 0
        while high - low > 1 and not self.limits.clock.over():
            middle = min((low + high) // 2, 2 * max(low, 1))
            many = (high - low).bit_length()
            fits = self._holds(middle, self.limits.share(max(1 / (many + 1), SEARCH_SHARE / many)))
            low, high = (middle, high) if fits else (low, middle)
        while self.best and self.after().verdict == "unknown" and not self.limits.clock.over():
            if not self._holds(self.best.size + 1, self.limits):
                break

    def around(self, size: int) -> None:
        """Outwards from a size that is about the last that fits; nothing is asked once time is up."""
        last(lambda near: not self.limits.clock.over() and self._holds(near, self.limits.share(SEARCH_SHARE)), size)

    def so_far(self) -> Largest:
        """What it has come to, in sizes of the dimension."""
        best, beyond, step = self.best, self.impossible, self.asked.step
        assert best is not None
        assert best.plan is not None
        recorded, more = best.plan.recorded, [] if self.note is None else [self.note]
        return Largest(
            best.size * step,
            replace(best.plan, recorded=replace(recorded, notes=(*recorded.notes, *more))),
            replace(self.after(), size=(best.size + 1) * step),
            beyond and replace(beyond, size=beyond.size * step),
            {name: None if size is None else size * step for name, size in self.reached.items()},
            self.budget,
        )

    def after(self) -> Tried:
        """What is known of the size after the best."""
        assert self.best is not None
        size = self.best.size + 1
        if self.impossible and self.impossible.size <= size:
            return self.impossible
        return self.tried.get(size) or Tried(size, "unknown", why="no time was left for it")

    def nothing(self) -> NoSchedule:
        """That not even the least size fits, or that it is not known."""
        first = self.impossible if self.impossible and self.impossible.size == 1 else self.tried.get(1)
        why = first.why if first else "no time was left for it"
        least, budget = f"the least size, {self.asked.step}", show_bytes(self.budget)
        if held := gradients_held(self.at(1), self.budget):
            why += f". {held}"
        if first and first.verdict == "infeasible":
            return Infeasible(f"proved: not even {least}, fits {budget}; {why}")
        return NoPlan(f"no plan was found for {least}, within {budget}; {why}")

    def _holds(self, size: int, limits: Limits) -> bool:
        """Whether a plan is found for the size, which is kept in mind, as a proof is that there is none."""
        found = self._judge(size, self.asked.method, limits)
        self.tried[size] = found
        if found.verdict == "fits" and (self.best is None or size > self.best.size):
            self.best = found
            self.keep(self.so_far())
        if found.verdict == "infeasible" and (self.impossible is None or size < self.impossible.size):
            self.impossible = found
        return found.verdict == "fits"

    def _judge(self, size: int, method: str, limits: Limits) -> Tried:
        self.doing(f"{method} at {size * self.asked.step}")
        try:
            subject = self.at(size)
        except RematError as error:
            if size == 1:
                raise
            return Tried(size, "unknown", why=str(error))
        least = self._at_least(subject)
        if least > self.budget:
            return Tried(size, "infeasible", why=f"every plan needs at least {show_bytes(least)}")
        if limits.clock.over():
            return Tried(size, "unknown", why="no time was left for it")
        question = self._question(subject, method)
        cuts = self.asked.pieces if self._may_cut(method) else WHOLE
        memory = self.memory and replace(self.memory, seconds=limits.clock.seconds)
        asked = WholeQuestion(subject=subject, question=question, limits=limits, memory=memory, cuts=cuts, offers=False)
        return self._verdict(size, subject, answer_whole(asked).found)

    def _may_cut(self, method: str) -> bool:
        """Whether what the method plans may be in pieces; the papers' methods say how far they come with whole ops."""
        return self.asked.pieces.wanted and method == self.asked.method

    def _question(self, subject: Subject, method: str) -> Question:
        allowed = self.asked.allowed(subject)
        return Question(
            budget=Budget(Fraction(self.budget)),
            method=method,
            known=self._known(subject) if takes_plans(method) and not self._may_cut(method) else (),
            session=self.asked.session,
            enough=Enough(cost=allowed, bound=allowed) if takes_plans(method) else None,
        )

    def _known(self, subject: Subject) -> tuple[PlanFile, ...]:
        """The best plan so far, where a step of another size has the same ops."""
        plan = self.best.plan if self.best else self.hint
        return (plan.recorded,) if plan and plan.subject.nodes == subject.nodes else ()

    def _verdict(self, size: int, subject: Subject, found: Answer) -> Tried:
        allowed, outcome = self.asked.allowed(subject), found.schedule.outcome
        if found.found and outcome is not None and outcome.cost <= allowed:
            return Tried(size, "fits", Planned(plan_file(found), found.subject))
        if self._may_cut(found.method):
            return Tried(size, "unknown", why="no plan was found in time, in the pieces that were tried")
        if found.status is Status.INFEASIBLE:
            return Tried(size, "infeasible", why=f"nothing fits {show_bytes(self.budget)}{_class_of(found)}")
        if found.bound_any_order is not None and found.bound_any_order > allowed:
            return Tried(size, "infeasible", why="whatever fits takes longer than is allowed")
        if not METHODS[found.method].own_order and (found.bound or 0) > allowed:
            return Tried(size, "infeasible", why=f"whatever fits takes longer than is allowed{_class_of(found)}")
        return Tried(size, "unknown", why="neither a plan nor a proof was found in time")

    def _at_least(self, subject: Subject) -> int:
        """What no schedule gets below; of ops that may be cut, what the outputs take."""
        target = target_of(self.asked.session)
        if self.asked.pieces.wanted:
            return target.held_at_the_end(subject)
        return target.needed_at_least(subject)

    def _least(self, size: int) -> int | None:
        """What every schedule of the size needs at least, which may be a proof; None: there is no such size."""
        try:
            least = self._at_least(self.at(size))
        except RematError:
            if size == 1:
                raise
            return None
        if least > self.budget and (self.impossible is None or size < self.impossible.size):
            self.impossible = Tried(size, "infeasible", why=f"every plan needs at least {show_bytes(least)}")
        return least


def _quick(limits: Limits) -> Limits:
    """The limits of a method that does not search; a limit of work needs no other."""
    return limits if limits.clock.most is not None else limits.within(QUICK_SECONDS)


def _class_of(found: Answer) -> str:
    """What a proof covers, if not every schedule."""
    if METHODS[found.method].own_order or found.bound_any_order == found.bound is not None:
        return ""
    other = found.says(PlanNote.REORDERED)
    return f" if it first computes the ops in {'that order' if other else 'the order given'}"
