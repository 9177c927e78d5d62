"""Holds the figures of a plan file to what running its program on paper gives.

Invariant: a plan that is let through costs and needs what it says, and claims no bound above its cost. What no replay
can tell, such as how good a bound is, is not believed here but only held to be possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from remat_cli.errors import BadInput
from remat_cli.formats.planfile import PlanFile, replay
from remat_cli.model.proved import Promise
from remat_cli.planning.kinds import target_of
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.target import Target
from remat_cli.rewrite import Rewritten
from solvers.plan import Plan
from solvers.problem import Status
from solvers.simulate import Outcome

ROUNDING = 1e-6  # of a bound, which is a fraction where costs are whole
AGAIN = "it was changed, or another version of remat made it; run 'remat solve' again"


def replayed(plan: PlanFile, subject: Subject) -> tuple[Plan, Outcome]:
    """The plan in the problem's numbers, with what it costs and needs. Raises BadInput where its file says otherwise.

    `subject`: what the plan schedules.
    """
    if plan.graph != subject.graph_planned:
        raise BadInput(_wrong(plan, f"its program is said to be of the ops '{plan.graph}'"))
    numbers, outcome = replay(plan, subject.problem, subject.nodes, subject.values)
    target = target_of(plan.kind)
    _hold(plan, _of_the_replay(plan, subject, outcome))
    held = target.held(plan.peak, plan.promises)
    if held > plan.budget and not target.tries_plans(subject):
        raise BadInput(_wrong(plan, f"it holds {held} bytes, which is over its budget of {plan.budget}"))
    bounds = {name: bound for name in ("bound", "bound_any_order") if (bound := getattr(plan, name)) is not None}
    for name, bound in bounds.items():
        if not 0 <= bound <= _rounded_up(plan.cost):
            raise BadInput(_wrong(plan, f"'{name}' is {bound}, where its cost is {plan.cost}"))
    proved = Status(plan.status) is not Status.FEASIBLE and plan.asked.get("minimize") != "peak"
    if proved and bounds and plan.cost > _rounded_up((1 + plan.limits.gap) * max(bounds.values())):
        raise BadInput(
            _wrong(plan, f"it is called {plan.status}, where its cost is {plan.cost} and its bounds {bounds}")
        )
    return numbers, outcome


def _rounded_up(cost: float) -> float:
    return cost + max(1.0, ROUNDING * cost)


def hold_to_model(plan: PlanFile, subject: Subject, model: Rewritten) -> None:
    """Raises BadInput where the plan's file promises other figures than those of its model, as far as these are
    predicted: what was seen in runs is believed, and so is what a stock session holds, whose model is made anew with a
    few bytes more or less."""
    target, places = target_of(plan.kind), plan.placement
    if target.online or target.tries_plans(subject) or (places is not None and places.threads is not None):
        return
    _hold(plan, _of_the_model(plan, subject, target, model))


def _hold(plan: PlanFile, figures: Iterator[tuple[str, int | None, int | None]]) -> None:
    for name, said, found in figures:
        if None not in (said, found) and said != found:
            raise BadInput(_wrong(plan, f"'{name}' is {said}, where its program makes it {found}"))


def _of_the_replay(plan: PlanFile, subject: Subject, outcome: Outcome) -> Iterator[tuple[str, int | None, int | None]]:
    before = subject.before()
    yield "peak", plan.peak, outcome.peak
    yield "cost", plan.cost, outcome.cost
    yield "baseline_peak", plan.baseline_peak, before.peak
    yield "baseline_cost", plan.baseline_cost, before.cost
    yield "resident", plan.resident, subject.problem.resident


def _of_the_model(
    plan: PlanFile, subject: Subject, target: Target, model: Rewritten
) -> Iterator[tuple[str, int | None, int | None]]:
    found = model.promise
    if plan.placement is not None:
        footprint = target.as_recorded(model, target.aside(subject), plan.placement)
        if footprint is None:
            raise BadInput(_wrong(plan, "its places are not those of its program"))
        found = footprint.promise
    for one in fields(Promise):
        if one.name != "itself":  # fitted to a version of the runtime
            yield f"promises.{one.name}", getattr(plan.promises, one.name), getattr(found, one.name)


def _wrong(plan: PlanFile, what: str) -> str:
    return f"the plan of {plan.model.path} is not as it was made: {what}; {AGAIN}"
