"""Attempts where the measured memory of models differs from the prediction: the budget asked for follows the
measurement. After a plan whose kernels go astray, the ops around that place run once.

Invariant: an answer that found a plan is of a model that was run and held no more than the budget, in its later runs
too. The set of ops that run once grows from attempt to attempt, so that there is an end; a note names them.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, field, replace

from remat_cli.model.problem_of import as_it_stands
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Attempt, Checked, Policy
from remat_cli.planning.search.checking import names
from remat_cli.planning.search.proofs import judged, unproved
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.subjects.subject import Subject
from remat_cli.units import show_bytes
from solvers.notes import Note
from solvers.problem import Status
from solvers.schedule import baseline

LESS_PART = 200  # one over this is the part of the budget asked for less, besides the measured excess
NEARER_MOVES = 4  # how often a plan that nearly fits is moved about
SPARE_PART = 50  # one over this is the part of the budget that, left unused, is worth another search


def of_graph(request: PlanRequest) -> Policy:
    """A plan of the request's graph, measured where predictions are known to be off."""
    if request.target.tries_plans(request.subject):
        return measured(request)
    return witnessed(request, request.budget, [])


def measured(request: PlanRequest) -> Policy:
    """A plan whose model was measured to hold no more than the budget."""
    budgets = _Budgets(request)
    untried: list[Answer] = []
    for way in ways(request):
        outcome = yield from budgets.down(way)
        if outcome.fits:
            outcome = yield from budgets.up(way, outcome)
            if not budgets.met or outcome.found.cost <= budgets.cheapest.cost:
                return _as_asked(request, outcome.found, outcome.over)
        if budgets.met:
            return _as_asked(request, budgets.cheapest.noted(Note(PlanNote.MET_EARLIER)), 0)
        untried += [outcome.found] if outcome.found.says(PlanNote.UNTRIED) else []
        if request.late:
            break
    return _as_asked(request, untried[0] if untried else outcome.found, outcome.over)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of asking for `budget`. `over`: how far the measured memory of the plan's model exceeds the request's
    budget."""

    found: Answer
    over: int
    budget: int

    @property
    def fits(self) -> bool:
        return self.found.found and self.over <= 0


_Steps = Generator[Attempt, Checked, _Outcome]


@dataclass(slots=True)
class _Budgets:
    """The search over budgets. `met`: plans that were measured to fit on the way."""

    request: PlanRequest
    met: list[Answer] = field(default_factory=list)

    @property
    def cheapest(self) -> Answer:
        return min(self.met, key=lambda one: one.cost)

    def down(self, way: PlanRequest) -> _Steps:
        """Ask for smaller budgets, each less by the measured excess of the last plan, until a plan fits."""
        clock, budget = self.request.limits.clock, way.budget
        while True:
            begun, found = clock.elapsed(), (yield from self._search(budget, way))
            took = clock.elapsed() - begun
            outcome = self._outcome(found, budget)
            if not found.found:
                return outcome
            outcome, moved = yield from self._nearer(way, outcome)
            if outcome.over <= 0 or self.request.late or not self.request.time.has_another(took):
                return outcome
            budget = outcome.budget - (outcome.over + self._step if moved else 0)

    def _nearer(self, way: PlanRequest, outcome: _Outcome) -> Generator[Attempt, Checked, tuple[_Outcome, bool]]:
        """The same computes moved about until less is predicted; with whether every excess could be moved away."""
        for _ in range(NEARER_MOVES):
            if outcome.over <= 0 or self.request.late:
                return outcome, True
            budget = outcome.budget - outcome.over - self._step
            asked = replace(way, budget=budget)
            moving = replace(asked, limits=self.request.time.nearer())
            found = outcome.found
            other = (yield Attempt(moving, asked, budget, found, found.candidate.unplaced, self.met)).found
            if not other.found:
                return replace(outcome, budget=budget), False
            outcome = self._outcome(other, budget)
        return outcome, True

    def up(self, way: PlanRequest, outcome: _Outcome) -> _Steps:
        """Ask for larger budgets while the measured plan leaves memory unused, because a cheaper plan may fit."""
        request, found, budget = self.request, outcome.found, outcome.budget
        took = request.limits.clock.elapsed()
        while (spare := -self._over(found)) > request.budget // SPARE_PART and not request.late:
            if not request.time.has_another(took):
                break
            budget += spare
            other = yield from self._search(budget, way)
            if not other.found or self._over(other) > 0 or other.cost >= found.cost:
                break
            found = other
        return replace(outcome, found=found)

    def _search(self, budget: int, way: PlanRequest) -> Policy:
        seldom = way.target.seldom_asks_again(way.subject)
        asked = replace(way, budget=budget, limits=self.request.time.one_search(seldom))
        return witnessed(asked, self.request.budget, self.met)

    @property
    def _step(self) -> int:
        return self.request.budget // LESS_PART

    def _outcome(self, found: Answer, budget: int) -> _Outcome:
        return _Outcome(found, self._over(found) if found.found else 0, budget)

    def _over(self, found: Answer) -> int:
        assert found.promise is not None
        return self.request.target.counted(found.promise) - self.request.budget


def _as_asked(request: PlanRequest, found: Answer, over: int) -> Answer:
    """The answer as one for the budget itself, without its plan if that is over.

    The search's proofs are about predicted memory, so they are dropped. The bytes held at the end of every run are a
    bound whatever optimizers do.
    """
    fits = found.found and over <= 0
    result, least = found.schedule.result, request.target.held_at_the_end(request.subject)
    notes = result.notes
    if least > request.budget:
        notes = (*notes, Note(PlanNote.HELD_AT_THE_END))
    elif not fits and not found.says(PlanNote.UNTRIED):
        besides = f", and the model of the best plan {show_bytes(request.budget + over)}" if over > 0 else ""
        held = request.target.held_by_original(request.subject)
        notes = (*notes, Note(request.target.differs, (held, besides)))
    result = replace(result, status=Status.FEASIBLE) if fits else result.without_plan()
    result = replace(result, notes=notes, bound=None, bound_any_order=None, grounds=())
    result = replace(result, peak_bound=least - found.aside, peak_node=None, peak_values=())
    found = found.with_result(result)
    found = replace(found, budget=request.budget) if fits else judged(found, request.budget)
    return replace(found, limits=request.limits, seconds=request.limits.clock.elapsed())


def ways(request: PlanRequest) -> Iterator[PlanRequest]:
    """Requests for each prediction of the session's memory: with less where the original holds more than predicted,
    then with more where it holds less."""
    for later in request.target.later_runs(request.subject):
        reading = replace(request, later_runs=later)
        unknown = max(0, -_less_held(reading))
        if unknown and request.budget - unknown > request.subject.problem.resident:
            yield replace(reading, budget=request.budget - unknown)
        yield foreseen(reading)


def foreseen(request: PlanRequest) -> PlanRequest:
    """The request with a larger budget where the original holds less than predicted, because fused values are not
    held."""
    return replace(request, budget=request.budget + max(0, _less_held(request)))


def _less_held(request: PlanRequest) -> int:
    """How much less than predicted the original was measured to hold, where its plans can be expected to do so too.

    Where the graph's ops are the kernels that run, a plan's prediction is better than that of the original's own order.
    """
    subject = request.subject
    if subject.behaviour.peaks is None or subject.behaviour.optimized:
        return 0
    before = as_it_stands(request.in_units(subject.as_given.problem))
    return baseline(before)[1].peak - max(subject.behaviour.peaks)


def witnessed(asked: PlanRequest, budget: int, met: list[Answer]) -> Policy:
    """A plan that fits and passes. `budget`: the one that the user asked for; `met`: plans for that, met on the way."""
    if not asked.target.bears_witness(asked.subject):
        return (yield Attempt(asked, asked, budget, met=met)).found
    once, seldom = set[str](), asked.target.seldom_asks_again(asked.subject)
    while True:
        searched = replace(asked, subject=run_once(asked.subject, once), limits=asked.time.one_search(seldom))
        checked = yield Attempt(searched, asked, budget, met=met)
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
