"""From a problem and a method to a plan that is known to be legal: reduce, solve, expand, lower, simulate.

Invariant: cost, peak and legality are `simulate`'s word; a plan over its budget never leaves with a good status.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from solvers.clock import Clock
from solvers.faults import sound
from solvers.notes import Note, SolverNote
from solvers.orders.best import Best
from solvers.plan import Plan, lower
from solvers.problem import Fit, Limits, Problem, Progress, Result, Solver, Status
from solvers.reductions.views import Contraction, reduced
from solvers.simulate import Outcome, simulate


@dataclass(frozen=True, slots=True)
class Schedule:
    """A solver's answer in the terms of the problem as it was asked."""

    result: Result
    plan: Plan | None
    outcome: Outcome | None


def evaluate(problem: Problem, order: Sequence[int]) -> tuple[Plan, Outcome]:
    plan = lower(problem, order)
    return plan, simulate(problem, plan)


def baseline(problem: Problem) -> tuple[Plan, Outcome]:
    """Every node once, in the order given."""
    return evaluate(problem, range(len(problem.nodes)))


def schedule(
    problem: Problem,
    budget: int,
    solver: Solver,
    limits: Limits,
    reduce: Callable[[Problem], Contraction] = reduced,
) -> Schedule:
    """Ask `solver` for an order of `problem` within `budget` bytes, and hold it to that."""
    smaller = reduce(sound(problem, "the problem asked"))
    sound(smaller.problem, "the reduced problem")
    whole = Best(problem, budget, limits) if any(node.updates for node in problem.nodes) else None

    def report(progress: Progress) -> None:
        order = None if progress.order is None else smaller.expand(progress.order)
        if whole is not None and order is not None and not whole.fits(whole.weigh(order)):
            return  # its updates have to wait for longer than it can hold what they read
        limits.report(
            replace(
                progress,
                cost=None if progress.cost is None else progress.cost + smaller.fixed_cost,
                bound=None if progress.bound is None else progress.bound + smaller.fixed_cost,
                order=order,
            )
        )

    fit = None if limits.fit is None else _in_smaller(limits.fit, smaller)
    answer = solver(smaller.problem, budget, replace(limits, report=report, fit=fit))
    result = _of_whole(answer, smaller)
    if result.order is None:
        return Schedule(result, None, None)
    plan, outcome = evaluate(problem, result.order)
    result = replace(result, order=plan.order())
    if answer.status.found and outcome.peak > budget:
        note = Note(SolverNote.OVER_BUDGET, (outcome.peak,))
        result = replace(result.without_plan(), notes=(*result.notes, note))
    bound = result.bound
    if result.status is Status.OPTIMAL and bound is not None and outcome.cost > bound * (1 + limits.gap):
        result = replace(result, status=Status.FEASIBLE)  # views that cost something were made more than once
    return Schedule(result, plan, outcome)


def _in_smaller(fit: Fit, smaller: Contraction) -> Fit:
    """The same for orders of the reduced problem."""

    def fit_smaller(order: tuple[int, ...], clock: Clock) -> Generator[bool, None, tuple[int, ...] | None]:
        found = yield from fit(smaller.expand(order), clock)
        return None if found is None else smaller.shrink(found)

    return fit_smaller


def _of_whole(answer: Result, smaller: Contraction) -> Result:
    """An answer to the reduced problem as one to the problem that was asked."""
    return replace(
        answer,
        bound=None if answer.bound is None else answer.bound + smaller.fixed_cost,
        bound_any_order=None if answer.bound_any_order is None else answer.bound_any_order + smaller.fixed_cost,
        order=None if answer.order is None else smaller.expand(answer.order),
        lean=None if answer.lean is None else smaller.expand(answer.lean),
        grounds=tuple(grounds.renamed(smaller.node_of) for grounds in answer.grounds),
        peak_node=None if answer.peak_node is None else smaller.node_of(answer.peak_node),
        peak_values=tuple(map(smaller.value_of, answer.peak_values)),
    )
