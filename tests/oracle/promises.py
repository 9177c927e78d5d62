"""What every method promises, held against the oracle and the replay: each thing that is wrong, in words.

Invariant: nothing here believes a solver, `lower` or `simulate`; time limits may end a search, never make it wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from solvers.clock import Clock
from solvers.methods.auto.minimize_peak import minimize_peak
from solvers.pebbles.floor import prove
from solvers.problem import Limits, Problem, Status
from solvers.proof.check import check_cost
from solvers.prover.certify import prove_cost, prove_peak
from solvers.reductions.views import without_views
from solvers.registry import METHODS
from solvers.schedule import Schedule, schedule
from tests.oracle.exact import cheapest, least_peak, optimum
from tests.oracle.problems import random_problem
from tests.oracle.replay import peak_of, replay

GAP = 1e-9
IN_ORDER = ("milp", "lp-rounding")  # their bounds are for all schedules with this order of first computes
PROVERS = (*IN_ORDER, "auto")


@dataclass(frozen=True, slots=True)
class Case:
    problem: Problem
    budget: int
    method: str
    seconds: float

    def limits(self) -> Limits:
        return Limits(clock=Clock(self.seconds), gap=GAP)

    def solved(self) -> Schedule:
        return schedule(self.problem, self.budget, METHODS[self.method].load(), self.limits())


def small_case(random: Random, seconds: float, inner: bool = False) -> Case:
    """Of up to 7 nodes, with a budget at which there is something to decide; mostly with methods that prove things."""
    problem = random_problem(random, random.randint(1, 7), 11)
    if not inner:
        problem = replace(problem, inner=frozenset())
    full, least = peak_of(problem, range(len(problem.nodes))), least_peak(problem, any_order=False)
    budget = random.choice((least - 1, least, least, (least + full) // 2, full - 1))
    others = [name for name in METHODS if name not in ("milp", "auto", "milp-paper")]
    method = random.choices(("milp", "auto", random.choice(others)), (2, 1, 1))[0]
    return Case(problem, budget, method, seconds)


def large_case(random: Random, seconds: float) -> Case:
    """Of 4 to 60 nodes: too large for the oracle, not for the replay."""
    problem = random_problem(random, random.randint(4, 60))
    budget = round(random.uniform(0.4, 1.0) * peak_of(problem, range(len(problem.nodes))))
    return Case(problem, budget, random.choice(list(METHODS)), seconds)


def updating(make: Callable[[Random, float], Case]) -> Callable[[Random, float], Case]:
    """Cases of that kind in which an update waits for a reader that may run again."""

    def found(random: Random, seconds: float) -> Case:
        while True:
            case = make(random, seconds)
            nodes, waits = case.problem.nodes, case.problem.waits()
            if any(not nodes[reader].once for readers in waits.values() for reader in readers):
                return case

    return found


def wrong_figures(case: Case, found: Schedule) -> Iterator[str]:
    """Legal, as the replay has it, within the budget."""
    if found.plan is None:
        if found.result.status.found:
            yield "a plan is claimed and not given"
        return
    assert found.outcome is not None
    figures = replay(case.problem, found.plan.order())
    if figures != (found.outcome.cost, list(found.outcome.memory)):
        yield f"the replay has other figures: {figures} instead of {found.outcome}"
    elif max(figures[1], default=case.problem.resident) != found.outcome.peak:
        yield "the peak is not the most that is in use"
    if found.result.status.found and found.outcome.peak > case.budget:
        yield "the plan is over its budget"
    bound = None if found.result.status is Status.UNKNOWN else found.result.bound
    if bound is not None and bound > found.outcome.cost:
        yield f"the bound {bound} is above the plan's own cost"


def wrong_proofs(case: Case, found: Schedule) -> Iterator[str]:
    """Bounds, optima and infeasibility, against the oracle."""
    result = found.result
    least = least_peak(case.problem, any_order=True)
    if result.peak_bound is not None and result.peak_bound > least:
        yield f"a peak of {result.peak_bound} is called least; {least} can be reached"
    anyhow = optimum(case.problem, case.budget, any_order=True)
    if result.bound_any_order is not None and anyhow is not None and result.bound_any_order > anyhow:
        yield f"the bound over all orders is {result.bound_any_order}; there is a plan of cost {anyhow}"
    if result.status.found:
        assert found.outcome is not None
        if anyhow is None or found.outcome.cost < anyhow:
            yield f"the plan costs {found.outcome.cost}, and nothing can cost less than {anyhow}"
        if result.status is Status.OPTIMAL and found.outcome.cost != anyhow:
            yield f"called optimal at {found.outcome.cost}; the optimum is {anyhow}"
    if case.method in PROVERS:
        yield from _wrong_in_order(case, found, anyhow)


def _wrong_in_order(case: Case, found: Schedule, anyhow: int | None) -> Iterator[str]:
    """What is proved of the schedules with the same order of first computes."""
    result, best = found.result, anyhow
    if case.method in IN_ORDER:
        best = optimum(case.problem, case.budget, any_order=False)
    elif found.plan is not None and result.status.found:
        first = dict.fromkeys(found.plan.order())
        best = optimum(case.problem, case.budget, any_order=False, kernels=[[index] for index in first])
    if result.status is Status.INFEASIBLE and best is not None:
        yield f"called infeasible; there is a plan of cost {best}"
    if result.bound is not None and best is not None and result.bound > best:
        yield f"the bound is {result.bound}; there is a plan of cost {best} in this order"
    if result.status is Status.ORDER_OPTIMAL and (found.outcome is None or best is None or found.outcome.cost > best):
        yield f"called optimal in this order at {found.outcome and found.outcome.cost}; the optimum is {best}"


def wrong_certificates(case: Case, found: Schedule) -> Iterator[str]:
    """What is proved on a search's own grounds."""
    order = range(len(case.problem.nodes)) if found.plan is None else dict.fromkeys(found.plan.order())
    for grounds in found.result.grounds:
        proof = prove_cost(case.problem, grounds, None, Clock(case.seconds))
        check_cost(case.problem, proof)
        first = [[index] for index in (grounds.order if len(grounds.order) == len(order) else order)]
        best = optimum(case.problem, case.budget, any_order=not grounds.order, kernels=first if grounds.order else None)
        if best is not None and (proof.bound is None or proof.bound > best):
            yield f"a certificate proves {proof.bound} of {grounds}; there is a plan of cost {best}"
    bound = found.result.peak_bound
    peak = None if bound is None else prove_peak(case.problem, bound, found.result.peak_node)
    if peak is not None and peak.bound > least_peak(case.problem, any_order=True):
        yield f"a certificate proves a peak of {peak.bound}, below which there is a schedule"


def wrong_least_peak(case: Case) -> Iterator[str]:
    """`--minimize peak`, and the bound on peaks by itself."""
    least = least_peak(case.problem, any_order=True)
    found = schedule(case.problem, case.budget, minimize_peak, case.limits())
    yield from wrong_figures(case, found)
    assert found.outcome is not None
    if found.outcome.peak < least:
        yield f"a peak of {found.outcome.peak} is said to be reached; the least is {least}"
    if found.result.status is Status.OPTIMAL and found.outcome.peak != least:
        yield f"a peak of {found.outcome.peak} is called least; {least} can be reached"
    if found.result.status is Status.INFEASIBLE and least <= case.budget:
        yield f"no plan is said to fit; one has a peak of {least}"
    bound = prove(case.problem, 1 << 61, case.limits()).peak
    if bound > least:
        yield f"every peak is said to be at least {bound}; {least} can be reached"


def wrong_contraction(case: Case) -> Iterator[str]:
    """Contracting views loses nothing, as far as views are free; what is gained by views being made later is real."""
    smaller = without_views(case.problem)
    best = optimum(case.problem, case.budget, any_order=False)
    less = cheapest(smaller.problem, case.budget, any_order=False)
    if less is None:
        if best is not None:
            yield f"contracted, nothing fits, and else a plan of cost {best}"
        return
    cost, order = less.length + smaller.fixed_cost, smaller.expand(less.order)
    if best is not None and cost > best:
        yield f"contracted, the optimum is {cost}, and else {best}"
    figures = replay(case.problem, order)
    if figures is None or max(figures[1]) > case.budget:
        yield "expanded, the contracted problem's optimum does not fit"
    elif figures[0] != cost and all(
        not case.problem.nodes[index].cost for index in _gone(case.problem, smaller.problem)
    ):
        yield f"expanded, the contracted problem's optimum costs {figures[0]} instead of {cost}"


def _gone(problem: Problem, smaller: Problem) -> list[int]:
    if len(problem.nodes) == len(smaller.nodes):
        return []
    return [index for index, node in enumerate(problem.nodes) if node.views]
