"""Finds plans of models whose measured memory differs from the prediction: the budget asked for follows the
measurement.

Invariant: an answer that found a plan is of a model that was run and held no more than the budget, in its later runs
too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.proofs import judged
from remat_cli.planning.search.readings import ways
from remat_cli.planning.search.repairs import repair
from remat_cli.planning.search.request import PlanRequest, candidate_of
from remat_cli.planning.search.witness import find_witnessed, limits_of_one_search, witness
from remat_cli.planning.targets.trials import Trials
from remat_cli.planning.time_plan import NEARER_SHARE, RETRY_PART
from remat_cli.units import show_bytes
from solvers.notes import Note
from solvers.problem import Status

LESS_PART = 200  # one over this is the part of the budget asked for less, besides the measured excess
NEARER_MOVES = 4  # how often a plan that nearly fits is moved about
SPARE_PART = 50  # one over this is the part of the budget that, left unused, is worth another search


def find_tried(request: PlanRequest) -> Answer:
    """A plan whose model was measured to hold no more than the budget."""
    hunt = _Hunt(request, request.trials_of(request.subject))
    untried: list[Answer] = []
    for way in ways(request):
        outcome = hunt.down(way)
        if outcome.fits:
            outcome = hunt.up(way, outcome)
            if not hunt.met or outcome.found.cost <= hunt.met[0].cost:
                return _as_asked(request, outcome.found, outcome.over)
        if hunt.met:
            return _as_asked(request, hunt.met[0].noted(Note(PlanNote.MET_EARLIER)), 0)
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


@dataclass(slots=True)
class _Hunt:
    """The search over budgets. `met`: the cheapest plan that was measured to fit on the way, if any was."""

    request: PlanRequest
    trials: Trials
    met: list[Answer] = field(default_factory=list)

    def down(self, way: PlanRequest) -> _Outcome:
        """Ask for smaller budgets, each less by the measured excess of the last plan, until a plan fits."""
        clock, budget = self.request.limits.clock, way.budget
        while True:
            begun, found = clock.elapsed(), self._search(budget, way)
            took = clock.elapsed() - begun
            outcome = _Outcome(found, self._over(found) if found.found else 0, budget)
            if not found.found:
                return outcome
            outcome, moved = self._nearer(way, outcome)
            if outcome.over <= 0 or self.request.late or clock.left() < RETRY_PART * took:
                return outcome
            budget = outcome.budget - (outcome.over + self._step if moved else 0)

    def _nearer(self, way: PlanRequest, outcome: _Outcome) -> tuple[_Outcome, bool]:
        """The same computes moved about until less is predicted; with whether every excess could be moved away."""
        for _ in range(NEARER_MOVES):
            if outcome.over <= 0 or self.request.late:
                return outcome, True
            budget = outcome.budget - outcome.over - self._step
            other = self._moved(budget, way, outcome.found)
            if other is None:
                return replace(outcome, budget=budget), False
            outcome = _Outcome(other, self._over(other), budget)
        return outcome, True

    def _moved(self, budget: int, way: PlanRequest, found: Answer) -> Answer | None:
        """The plan with ops moved about until less is predicted, measured again."""
        way = replace(way, budget=budget)
        limits = self.request.limits.share(NEARER_SHARE)
        moved = repair(replace(way, limits=limits), candidate_of(found))
        if moved is None:
            return None
        witnessed = witness(way, moved.subject, moved, self.trials)
        return None if witnessed is None else found.with_candidate(witnessed, way.target.session)

    def up(self, way: PlanRequest, outcome: _Outcome) -> _Outcome:
        """Ask for larger budgets while the measured plan leaves memory unused, because a cheaper plan may fit."""
        request, clock, found, budget = self.request, self.request.limits.clock, outcome.found, outcome.budget
        took = clock.elapsed()
        while (spare := -self._over(found)) > request.budget // SPARE_PART and not request.late:
            if clock.left() < RETRY_PART * took:
                break
            budget += spare
            other = self._search(budget, way)
            if not other.found or self._over(other) > 0 or other.cost >= found.cost:
                break
            found = other
        return replace(outcome, found=found)

    def _search(self, budget: int, way: PlanRequest) -> Answer:
        limits = limits_of_one_search(self.request)
        return find_witnessed(replace(way, budget=budget, limits=limits, keep=self._keep), self.trials)

    def _keep(self, found: Answer) -> None:
        if self._over(found) <= 0:
            self.met[:] = [min((*self.met, found), key=lambda one: one.cost)]
            self.request.keep(replace(found, budget=self.request.budget))

    @property
    def _step(self) -> int:
        return self.request.budget // LESS_PART

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
    found = replace(found, schedule=replace(found.schedule, result=result))
    found = replace(found, budget=request.budget) if fits else judged(found, request.budget)
    return replace(found, limits=request.limits, seconds=request.limits.clock.elapsed())
