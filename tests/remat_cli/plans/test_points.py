"""What points teach each other, held to the definition on random curves."""

from __future__ import annotations

from pathlib import Path

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st

from remat_cli.formats.planfile import PlanFile, Searched, Source
from remat_cli.model.proved import Promise
from remat_cli.model.sessions import DEFAULT
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.plans.points import Curve, Point, agree, knee, point_of
from solvers.problem import Limits, Result, Status
from solvers.schedule import Schedule

OPTIMUM = {budget: 200 - 10 * budget for budget in range(1, 11)}  # a curve of which random points know something


def plan(cost: int, budget: int, peak: int) -> PlanFile:
    source = Source(Path("m.onnx"), "0")
    return PlanFile(
        source, None, {}, budget, "", 0, Searched(1, 0), "feasible", None, peak, cost, 9, 100, 0, Promise(peak), ()
    )


@st.composite
def points(draw: st.DrawFn) -> list[Point]:
    """By two methods at ten budgets: costs above the optimum, of what plans really need, and bounds below it."""
    found = []
    for method in ("auto", "evict"):
        for budget, least in OPTIMUM.items():
            over, under = draw(st.integers(0, 60)), draw(st.integers(0, 60))
            known, peak = draw(st.booleans()), draw(st.integers(1, budget))
            found.append(
                Point(
                    budget=budget,
                    method=method,
                    status=Status.FEASIBLE if known else Status.UNKNOWN,
                    plan=plan(OPTIMUM[peak] + over, budget, peak) if known else None,
                    bound_any_order=draw(st.sampled_from([None, least - under])),
                    made_by=method,
                )
            )
    return found


@settings(max_examples=25)
@given(points())
def test_every_point_knows_what_the_others_found_and_proved(given: list[Point]) -> None:
    for point in agree(given, 0.0):
        plans = [
            p.cost
            for p in given
            if p.cost and p.peak and p.peak <= point.budget and (point.method == "auto" or p.method == "evict")
        ]
        bounds = [p.bound_any_order for p in given if p.bound_any_order is not None and p.budget >= point.budget]
        assert point.cost == min(plans, default=None)
        assert point.bound_any_order == max(bounds, default=None)
        assert (point.status is Status.OPTIMAL) == (point.cost is not None and point.cost == point.bound_any_order)
        assert point.plan is None or (point.plan.budget, point.plan.method) == (point.budget, point.method)
    assert agree(agree(given, 0.0), 0.0) == agree(given, 0.0)


def test_the_knee_is_where_memory_times_time_is_least() -> None:
    costs = {10: 100, 8: 101, 6: 110, 4: 180, 2: 900}
    curve = [
        Point(budget=budget, method="auto", status=Status.FEASIBLE, plan=plan(cost, budget, budget))
        for budget, cost in costs.items()
    ]
    found = knee(curve)
    assert found is not None
    assert found.budget == 6
    assert knee(curve[:2]) is None


def test_the_end_of_a_range_is_no_knee() -> None:
    steep, flat = {10: 100, 8: 200, 6: 400}, {10: 100, 8: 101, 6: 102}
    for costs in (steep, flat):
        curve = [
            Point(budget=budget, method="auto", status=Status.FEASIBLE, plan=plan(cost, budget, budget))
            for budget, cost in costs.items()
        ]
        assert knee(curve) is None


def test_a_point_whose_plan_is_of_the_file_s_own_ops_is_emitted_from_those() -> None:
    """Where a stock session runs other kernels, its plan was replayed on the ops of those, which it does not name."""
    content = onnx.load(Path(__file__).parents[2] / "data/onnx_tests/group_normalization_epsilon.onnx")
    subject = load_subject(content, None, {}, DEFAULT)
    assert subject.behaviour.optimized
    schedule = Schedule(Result(Status.FEASIBLE, subject.own.as_it_is()[0].order()), *subject.own.as_it_is())
    found = point_of(Answer(Candidate(subject.own, schedule), "auto", 10_000, 0.0, Limits(), DEFAULT))
    planned = Curve(subject, subject.before(), 10_000, (found,)).planned(found)
    assert planned is not None
    assert planned.replayed()[1].cost == found.cost
