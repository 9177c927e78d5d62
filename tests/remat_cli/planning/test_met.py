"""Plans met beside a search: which are placed, which are given up, and what a known plan spares."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from time import monotonic, sleep

import pytest

from remat_cli.planning.search import met, placing, repairs
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.met import CHEAPER, FAR_CHEAPER, Met
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.targets.candidate import Candidate
from solvers.clock import Clock
from solvers.problem import Limits, Problem, Progress, Result, Status
from solvers.reductions.views import reduced
from tests.remat_cli.planning.requests import alone, attempted, candidate_for, request_for

CONTEXT: ContextVar[str] = ContextVar("CONTEXT")
AMPLE = 1000.0  # seconds, which nothing here takes


@pytest.fixture
def request_beside(data: Path, monkeypatch: pytest.MonkeyPatch) -> PlanRequest:
    """A request of which the orders are placed by a thread beside the search."""
    request = request_for(data / "torch_cnn.onnx", 10**9)
    return replace(request, limits=Limits(Clock(AMPLE)), reorder=False)


def dearer(request: PlanRequest) -> Candidate:
    """A plan that computes some ops again."""
    found = candidate_for(request.subject, seed=1)
    assert beyond(found) > 0
    return found


def beyond(plan: Candidate) -> int:
    return plan.cost - sum(node.cost for node in plan.subject.problem.nodes)


def wait_until(so: Callable[[], bool]) -> None:
    end = monotonic() + AMPLE
    while not so():
        assert monotonic() < end
        sleep(0.001)


def unplaceable(monkeypatch: pytest.MonkeyPatch) -> list[Candidate]:
    """Nothing can be placed; what was tried."""
    tried: list[Candidate] = []

    def refuse(_: PlanRequest, candidate: Candidate) -> None:
        tried.append(candidate)

    for room in (met, placing):
        monkeypatch.setattr(room, "repair", refuse)
    monkeypatch.setattr(met, "walk", lambda request, candidate: None)
    return tried


def test_what_all_the_time_was_too_short_for_is_not_tried_again(
    request_beside: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, plan = unplaceable(monkeypatch), dearer(request_beside)
    order = reduced(request_beside.subject.problem).shrink(plan.order)

    asked: list[int] = []

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        asked.append(budget)
        if len(asked) > 1:  # for less memory
            return Result(Status.UNKNOWN, None)
        limits.report(Progress(0.0, order=order))
        wait_until(lambda: bool(tried))
        return Result(Status.FEASIBLE, order)

    assert not attempted(replace(request_beside, solver=search, at_hand=10 * beyond(plan))).found
    assert len(tried) == 1


def test_only_the_plan_that_had_no_places_is_given_up(
    request_beside: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    unplaceable(monkeypatch)
    plan, other = dearer(request_beside), candidate_for(request_beside.subject)
    found, another = (request_beside.answer_of(one, 0.0, cut=False) for one in (plan, other))
    here, progress = Met(alone(request_beside)), Progress(0.0, order=plan.order)
    assert not here.gave_up(found)
    here.place(request_beside.subject, progress)
    assert here.gave_up(found)
    assert not here.gave_up(another)


def test_what_an_interrupt_cut_off_is_tried_again_and_what_came_after_it_is_not(
    request_beside: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ended the placing of the best order, which then counted as one without places."""
    tried, pressed, plan = unplaceable(monkeypatch), list[bool](), dearer(request_beside)
    request = replace(request_beside, limits=Limits(Clock(AMPLE, lambda: bool(pressed))))
    here, progress = Met(alone(request)), Progress(0.0, order=plan.order)
    found = request.answer_of(plan, 0.0, cut=False)

    def press(_: PlanRequest, candidate: Candidate) -> None:
        tried.append(candidate)
        pressed.append(True)

    monkeypatch.setattr(met, "repair", press)
    here.place(request.subject, progress)
    assert not here.gave_up(found)
    here.place(request.subject, progress)
    assert here.gave_up(found)
    assert len(tried) == 2


def test_places_are_given_up_for_a_gain_only(request_beside: PlanRequest) -> None:
    here, plan = Met(alone(request_beside)), dearer(request_beside)
    assert here.beside
    here.newest = request_beside.subject, Progress(0.0, order=plan.order)
    here.tried = round(beyond(plan) / CHEAPER) + 1
    assert not here.is_outdated()  # the search goes on, and may find more
    here.tried = round(beyond(plan) / FAR_CHEAPER) + 1
    assert here.is_outdated()  # the time may be too short for both
    here.tried = round(beyond(plan) / CHEAPER) + 1
    here.closed = True
    assert here.is_outdated()
    here.tried = beyond(plan)
    assert not here.is_outdated()
    here.request = replace(request_beside, by_memory=True)
    assert here.is_outdated()
    here.newest = None
    assert not here.is_outdated()


def test_a_first_order_is_given_up_for_a_far_better_one_which_comes_next(
    request_beside: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, subject = Met(alone(request_beside)), request_beside.subject
    far, near = Progress(0.0, order=dearer(request_beside).order), Progress(0.0, order=candidate_for(subject).order)
    walked = unplaceable(monkeypatch)
    assert here.beside
    monkeypatch.setattr(met, "walk", lambda _, candidate: walked.append(candidate))
    here.newest = subject, near  # what was heard while the first was being placed
    here.place(subject, far)
    assert len(walked) == 1  # it was tried, and no walk came in its stead
    assert here._next() == (subject, near)
    here.place(subject, near)
    assert len(walked) == 3


@pytest.mark.parametrize("share", [0.5, 1.0, 2.0])
def test_what_a_known_plan_is_better_than_is_not_placed(request_beside: PlanRequest, share: float) -> None:
    plan = dearer(request_beside)
    here = Met(alone(replace(request_beside, at_hand=int(share * beyond(plan)))))
    assert here.beside
    here.hear(request_beside.subject, Progress(0.0, order=plan.order))
    assert (here.newest is not None) == (share > 1)


def test_nothing_is_walked_late_where_a_plan_is_known(
    request_beside: PlanRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk over thousands of pieces took seconds after the limit, though its plan would not have been used."""
    walked: list[object] = []
    request_beside = replace(request_beside, method="auto")
    monkeypatch.setattr(repairs, "walked", lambda *_: walked.append(_))
    plan, late = dearer(request_beside), replace(request_beside, limits=Limits(Clock(0.0)))
    repairs.walk(replace(late, at_hand=beyond(plan)), plan)
    assert not walked
    repairs.walk(late, plan)
    repairs.walk(replace(request_beside, at_hand=beyond(plan)), plan)
    assert len(walked) == 2


def test_orders_of_a_problem_without_a_model_are_told_of_by_who_asked(data: Path) -> None:
    """One after the other, in the thread that asked, while the search waits; `report` has that thread's context."""
    asked = request_for(data / "networks" / "unet.problem.json", 10**12)
    smaller = reduced(asked.subject.problem)
    orders = [smaller.shrink(candidate_for(asked.subject, seed).order) for seed in (1, None)]
    told: list[tuple[int, int]] = []  # how many ops a plan has, and in which thread it was allowed

    def allows(found: Answer) -> bool:
        told.append((len(found.candidate.order), get_ident()))
        return True

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        for number, order in enumerate(orders):
            limits.report(Progress(0.0, order=order))
            assert len(told) == number + 1
        return Result(Status.FEASIBLE, orders[-1])

    so_far, contexts = SoFar(allows=allows), list[str]()
    limits = replace(asked.limits, report=lambda _: contexts.append(CONTEXT.get("none")))
    CONTEXT.set("of who asked")
    found = attempted(replace(asked, solver=search, reorder=False, so_far=so_far, limits=limits))
    assert [count for count, _ in told] == [len(smaller.expand(order)) for order in orders]
    assert {thread for _, thread in told} == {get_ident()}
    assert contexts == ["of who asked"] * 2
    assert found.found
    assert so_far.plan is not None
    assert found.limits.clock is asked.limits.clock


def test_what_goes_wrong_where_progress_is_heard_ends_the_search(data: Path) -> None:
    def broken(_: Progress) -> None:
        raise LookupError("of the program")

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        limits.report(Progress(0.0))
        raise AssertionError("the search goes on")

    for name in ("networks/unet.problem.json", "torch_cnn.onnx"):
        asked = request_for(data / name, 10**12)
        with pytest.raises(LookupError, match="of the program"):
            attempted(replace(asked, solver=search, reorder=False, limits=replace(asked.limits, report=broken)))
