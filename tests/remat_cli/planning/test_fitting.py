"""What is made to fit beside a search, what is given up, and what a known plan spares."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from remat_cli.events import EventQueue
from remat_cli.planning.search import fitting, repairs
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.fitting import Fitted, beyond
from remat_cli.planning.search.repairs import Repairing
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.targets.candidate import Candidate
from solvers import clock
from solvers.clock import Clock
from solvers.coroutines import run
from solvers.problem import Limits, Problem, Progress, Result, Status
from solvers.reductions.views import reduced
from tests.remat_cli.planning.requests import alone, attempted, candidate_for, request_for

AMPLE = 1000.0  # seconds, which nothing here takes
LARGE = 10**9


@pytest.fixture
def asked(data: Path) -> PlanRequest:
    """A request of which the orders are placed beside the search, within seconds."""
    request = request_for(data / "torch_cnn.onnx", LARGE, method="auto")
    return replace(request, limits=Limits(Clock(AMPLE)), reorder=False)


def dearer(request: PlanRequest) -> Candidate:
    """A plan that computes some ops again."""
    found = candidate_for(request.subject, seed=1)
    assert beyond(found) > 0
    return found


def answer_of(request: PlanRequest, plan: Candidate) -> Answer:
    return request.answer_of(plan, 0.0, cut=False)


def made_to_fit(here: Fitted, plan: Candidate) -> Generator[None, None, tuple[int, ...] | None]:
    return here.fit(plan.subject, plan.order, Clock(AMPLE))


def unplaceable(
    monkeypatch: pytest.MonkeyPatch, press: Callable[[], object] = lambda: None
) -> list[tuple[Candidate, int]]:
    """Nothing can be placed, which takes two steps to find out; what was tried to the end, by which seed.

    `press`: called then.
    """
    tried: list[tuple[Candidate, int]] = []

    def refuse(request: PlanRequest, candidate: Candidate, _: Clock) -> Repairing:
        yield
        tried.append((candidate, request.limits.seed))
        press()
        return None

    monkeypatch.setattr(fitting, "repair", refuse)
    monkeypatch.setattr(fitting, "walk", lambda *_: None)
    return tried


def test_what_was_tried_in_vain_is_tried_again_with_other_random_numbers(
    asked: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, plan, other = unplaceable(monkeypatch), dearer(asked), candidate_for(asked.subject)
    here, seed = Fitted(alone(asked)), asked.limits.seed
    assert run(made_to_fit(here, plan)) is None
    assert here.finish(answer_of(asked, plan)) is None
    assert here.finish(answer_of(asked, other)) is None
    assert tried == [(plan, seed), (plan, seed + 1), (other, seed)]


def test_no_time_goes_by_for_an_order_that_waits_for_its_turn(
    asked: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search went on for as long as a way of making an order fit may take, which then had no time."""
    begun, now = slow(monkeypatch), [0.0]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    request = replace(asked, limits=Limits(Clock(10.0)))
    here, plan = Fitted(alone(request)), dearer(asked)
    next(made_to_fit(here, plan))
    now[0] = 9.0
    assert [one.share(0.7).over() for _, one in begun] == [False]
    now[0] = 10.0
    assert [one.over() for _, one in begun] == [True]


def slow(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Candidate, Clock]]:
    """Making an order fit takes three steps; what was begun, and its clock."""
    begun: list[tuple[Candidate, Clock]] = []

    def slowly(request: PlanRequest, candidate: Candidate, given: Clock) -> Repairing:
        begun.append((candidate, given))
        yield
        yield
        return request.place(candidate)

    monkeypatch.setattr(fitting, "repair", slowly)
    return begun


def test_what_an_interrupt_cut_off_is_tried_again(asked: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ended the placing of the best order, which then counted as one without places."""
    pressed = list[bool]()
    tried = unplaceable(monkeypatch, lambda: pressed.append(True))
    request = replace(asked, limits=Limits(Clock(AMPLE, lambda: bool(pressed))))
    here, plan = Fitted(alone(request)), dearer(asked)
    assert run(made_to_fit(here, plan)) is None
    assert here.finish(answer_of(request, plan)) is None
    assert len(tried) == 2


def test_only_the_first_that_cannot_be_placed_is_replaced_by_a_walk(
    asked: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    unplaceable(monkeypatch)
    walked: list[Candidate] = []
    monkeypatch.setattr(fitting, "walk", lambda _, candidate, __: walked.append(candidate))
    here, plan = Fitted(alone(asked)), dearer(asked)
    for one in (plan, candidate_for(asked.subject)):
        assert run(made_to_fit(here, one)) is None
    assert walked == [plan]


def test_the_cheapest_that_fits_is_kept_and_told_of(asked: PlanRequest) -> None:
    so_far = SoFar()
    here, plan, cheap = Fitted(alone(replace(asked, so_far=so_far))), dearer(asked), candidate_for(asked.subject)
    for one, best in ((plan, plan), (cheap, cheap), (plan, cheap)):
        assert run(made_to_fit(here, one)) is not None
        assert here.best is not None
        assert so_far.plan is not None
        assert here.best.cost == so_far.plan.cost == best.cost


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_what_a_known_plan_is_better_than_is_not_placed(asked: PlanRequest, share: float) -> None:
    plan = dearer(asked)
    here = Fitted(alone(replace(asked, at_hand=int(share * beyond(plan)))))
    here.hear(asked.subject, Progress(0.0, order=plan.order))
    assert (here.last() is not None) == (share > 1)
    run(made_to_fit(here, plan))
    assert (here.best is not None) == (share > 1)


def test_nothing_is_walked_late_where_a_plan_is_known(asked: PlanRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over thousands of pieces took seconds after the limit, though its plan would not have been used."""
    walked: list[object] = []
    monkeypatch.setattr(repairs, "walked", lambda *_: walked.append(_))
    plan, late = dearer(asked), replace(asked, limits=Limits(Clock(0.0)))
    repairs.walk(replace(late, at_hand=beyond(plan)), plan, Clock())
    assert not walked
    repairs.walk(late, plan, Clock())
    repairs.walk(replace(asked, at_hand=beyond(plan)), plan, Clock())
    assert len(walked) == 2


def test_only_who_makes_cost_least_asks_what_fits(asked: PlanRequest) -> None:
    for request, asks in (
        (asked, True),
        (replace(asked, by_memory=True), False),
        (replace(asked, method="chen-sqrt"), False),
    ):
        assert (Fitted(alone(request)).told(request.subject, request.limits).fit is not None) == asks


def test_orders_of_a_problem_without_a_model_are_told_of_at_once(data: Path) -> None:
    asked = request_for(data / "networks" / "unet.problem.json", 10**12)
    smaller = reduced(asked.subject.problem)
    orders = [smaller.shrink(candidate_for(asked.subject, seed).order) for seed in (1, None)]
    told: list[int] = []  # how many ops a plan has

    def allows(found: Answer) -> bool:
        told.append(len(found.candidate.order))
        return True

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        for number, order in enumerate(orders):
            limits.report(Progress(0.0, order=order))
            assert len(told) == number + 1
        return Result(Status.FEASIBLE, orders[-1])

    so_far = SoFar(allows=allows)
    found = attempted(replace(asked, solver=search, reorder=False, so_far=so_far))
    assert told == [len(smaller.expand(order)) for order in orders]
    assert found.found
    assert so_far.plan is not None
    assert found.limits.clock is asked.limits.clock


def test_what_goes_wrong_where_progress_is_heard_ends_the_search(data: Path) -> None:
    class BrokenEvents(EventQueue[Progress]):
        def say(self, _: Progress) -> None:
            raise LookupError("of the program")

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        limits.report(Progress(0.0))
        raise AssertionError("the search goes on")

    for name in ("networks/unet.problem.json", "torch_cnn.onnx"):
        asked = request_for(data / name, 10**12)
        with pytest.raises(LookupError, match="of the program"):
            attempted(replace(asked, solver=search, reorder=False, so_far=SoFar(events=BrokenEvents())))
