"""A request: what is asked of which solver, for which target, within which limits; with the models
of plans that were made and run on the way.

Invariant: the budget is compared with what the target counts. Each model is made once and run once; after one that does
not end within the longest time, none is run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic

from remat_cli.checking.trying import Peaks, peaks
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.planning.search.answer import Answer, answer
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.planning.targets.target import Target
from remat_cli.planning.time_plan import TRIAL_SECONDS, TimePlan
from remat_cli.rewrite import Rewritten
from solvers.clock import WRITTEN_MOVES, Clock
from solvers.placement.memory import MemoryModel
from solvers.plan import Plan
from solvers.problem import Enough, Limits, Problem, Progress, Solver
from solvers.registry import METHODS
from solvers.schedule import evaluate

ModelKey = tuple[Plan, int]  # a model's plan, and how much of it is hidden from the runtime's planner


@dataclass(slots=True)
class Trials:
    """The models of plans, as they were made for one target and measured there.

    `held`: the measured bytes of each model; None if it did not run. `endless`: a model had the longest time and did
    not end.
    """

    target: Target
    models: dict[ModelKey, Rewritten] = field(default_factory=dict)
    held: dict[ModelKey, Peaks | None] = field(default_factory=dict)
    endless: bool = False

    def model(self, subject: Subject, candidate: Candidate) -> Rewritten:
        """The plan's model, with the original's kernels if possible. `subject`: the one with all that default options
        fuse."""
        plan, hiding = key = _key_of(candidate)
        if key not in self.models:
            same = candidate.subject.problem.inner == subject.problem.inner
            first = candidate.model if same else None
            self.models[key] = self.target.rewrite_surely(subject, plan, hiding, first)
        return self.models[key]

    def peaks(self, candidate: Candidate, model: Rewritten, seconds: float) -> Peaks | None:
        """The measured memory of the model; None if it does not run in so many seconds."""
        graph, key = candidate.subject.graph, _key_of(candidate)
        assert graph is not None
        if key not in self.held and not self.endless:
            feeds, begun = feeds_of(graph, ops_of(graph)), monotonic()
            held = peaks(graph, model.model, feeds, candidate.subject.threads, seconds, self.target.session)
            self.held[key] = held
            self.endless = held is None and monotonic() - begun >= TRIAL_SECONDS
        return self.held.get(key)


def _key_of(candidate: Candidate) -> ModelKey:
    return candidate.plan, (candidate.footprint.promise.hiding if candidate.footprint else None) or 0


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """`enough`: what a search may end with. `so_far`: has each plan that fits in its session, while a cheaper one may
    still come. `at_hand`: the extra cost, over the model without a plan, of the cheapest known plan that fits.

    `by_memory`: whether the solver makes memory least, and not cost.
    `leanly`: whether the plan that needs least is wanted, whatever it costs. `leanest`: those found so far; `lean`: the
    orders of some. `trials`: the models made and run so far, by graph.
    `memories`: what orders of a problem need, by problem.
    `beside`: whether it is asked beside another, so that nobody hears of its progress.
    """

    subject: Subject
    budget: int
    method: str
    solver: Solver
    limits: Limits
    target: Target
    reorder: bool | None = False
    enough: Enough | None = None
    so_far: SoFar = field(default_factory=SoFar, compare=False, repr=False)
    beside: bool = False
    by_memory: bool = False
    leanly: bool = False
    at_hand: int | None = None
    lean: dict[Problem, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    leanest: dict[tuple[int, Problem], Candidate] = field(default_factory=dict, compare=False, repr=False)
    trials: dict[int, tuple[Subject, Trials]] = field(default_factory=dict, compare=False, repr=False)
    memories: dict[int, tuple[Problem, MemoryModel]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def most(self) -> int:
        """The part of the budget that the allocator has, inputs and weights included."""
        return self.budget - self.target.aside(self.subject)

    @property
    def room(self) -> int:
        """The part of that which a plan may be foretold to take."""
        return self.target.foretold_within(self.budget) - self.target.aside(self.subject)

    @property
    def time(self) -> TimePlan:
        return TimePlan(self.limits)

    @property
    def late(self) -> bool:
        return self.time.late

    @property
    def given_up(self) -> bool:
        """Whether somebody had enough before any order was known, so that there is nothing to make a plan of."""
        return self.limits.clock.stopped() and self.so_far.order is None

    @property
    def may_walk(self) -> bool:
        """Whether a plan by any method may answer. The papers' methods answer with their own plans, or not at all."""
        return self.method in METHODS and METHODS[self.method].may_reorder

    def trials_of(self, subject: Subject) -> Trials:
        """The models of plans of the subject's graph: each is made and run once for a request and all that it asks."""
        return self.trials.setdefault(id(subject.graph), (subject, Trials(self.target)))[1]

    def memory(self, subject: Subject) -> MemoryModel:
        """What orders of the subject need; how much room there is, the caller says."""
        problem = subject.problem
        if id(problem) not in self.memories:
            self.memories[id(problem)] = problem, self.target.memory(self.target.in_units(problem), 0)
        return self.memories[id(problem)][1]

    def ask(self, subject: Subject, budget: int, limits: Limits, reordered: bool) -> Answer:
        """The method's answer, with every size as the allocator takes it."""
        with self.so_far.times.part("searching"):
            sized = self.sized(subject)
            found = answer(sized, budget, self.method, self.solver, limits, reordered)
        if not reordered and found.schedule.result.lean is not None:
            self.lean[sized.problem] = found.schedule.result.lean
        session = self.target.session if subject.graph is not None else None
        found = replace(found.about(subject), session=session)
        if not found.found or found.schedule.result.order is None:
            return found
        plan, outcome = evaluate(subject.problem, found.schedule.result.order)
        schedule = replace(found.schedule, plan=plan, outcome=outcome)
        return replace(found, candidate=Candidate(subject, schedule))

    def sized(self, subject: Subject) -> Subject:
        """The subject with every size as the allocator takes it; a problem without a model as it stands."""
        return subject if subject.graph is None else subject.solving(self.target.searched(subject))

    def counted(self, candidate: Candidate) -> int:
        return self.target.counted(candidate.promise)

    def fits(self, candidate: Candidate) -> bool:
        return self.counted(candidate) <= self.budget

    def place(self, candidate: Candidate, clock: Clock | None = None) -> Candidate:
        """The candidate with its model and footprint, as tightly as the budget asks."""
        clock = clock or Clock()
        with clock.at_work(WRITTEN_MOVES * len(candidate.order)):
            return self.target.place(candidate, self.budget, clock)

    def with_model(self, candidate: Candidate, model: Rewritten) -> Candidate | None:
        """The candidate with a model of the original's kernels, and what that is predicted to hold; None if it has
        others."""
        if model.astray or model.unpinned:
            return None
        if not (model.bare or model.shown or model.as_run):
            return candidate
        # the runtime's planner and optimizers decide how the values are held that they see as they are
        footprint = self.target.footprint(model, self.target.aside(self.subject), self.budget)
        return replace(candidate, model=model, footprint=footprint)

    def say(self, doing: str) -> None:
        self.tell(Progress(self.limits.clock.elapsed(), doing=doing))

    def tell(self, progress: Progress) -> None:
        """Tell whoever asked."""
        if not self.beside:
            self.so_far.say(progress)

    def answer_of(self, candidate: Candidate, seconds: float, cut: bool) -> Answer:
        """The candidate as an answer to this request."""
        session = self.target.session if candidate.subject.graph is not None else None
        return Answer(candidate, self.method, self.budget, seconds, self.limits, session, cut=cut)
