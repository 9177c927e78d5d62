"""Answers that fit as they really run: budgets are never exceeded, and never lead to dearer plans than smaller ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from remat_cli.model.proved import Promise
from remat_cli.model.sessions import STRICT
from remat_cli.notes.kinds import PlanNote
from remat_cli.planning.kinds import TARGETS, target_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer, find_solver
from remat_cli.planning.search.known import cheaper_known, cheapest_known
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.targets.planned import PlannedTarget
from remat_cli.plans.keeping import plan_file
from solvers.clock import Clock, limited
from solvers.coroutines import run
from solvers.ledger import Part
from solvers.methods.exact.low_walks import lowest
from solvers.notes import Note, SolverNote
from solvers.problem import Limits, Problem, Progress, Result, Status
from tests.ample import ample
from tests.cli.running import Command
from tests.remat_cli.planning.requests import attempted


class Hearing(SoFar):
    """Tells at once what is kept."""

    def __init__(self, hear: Callable[[Answer], object]) -> None:
        super().__init__()
        self.hear = hear

    def keep(self, found: Answer) -> None:
        super().keep(found)
        self.hear(found)


def question(path: Path, share: float, method: str = "milp") -> PlanRequest:
    subject = load_subject(path, None, {})
    limits = Limits(ample())
    budget, solver = int(share * subject.before().peak), find_solver(method, {})
    return PlanRequest(subject, budget, method, solver, limits, target_of(STRICT))


def test_what_is_held_is_within_the_budget(data: Path) -> None:
    asked = question(data / "torch_unet_convt.onnx", 0.8)
    found = attempted(asked)
    assert found.found
    assert found.promise is not None
    assert found.placement is not None
    assert found.promise.live is not None
    assert found.promise.arena is not None
    assert found.promise.live <= found.promise.arena <= asked.budget
    assert found.promise.arena - target_of(STRICT).aside(found.subject) - found.promise.live < 64 * len(
        found.placement.allocations
    )


def test_what_cannot_be_placed_is_no_plan(data: Path, remat: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """An allocator that always wants twice the budget: no exit code 0, and no file."""

    class Greedy(PlannedTarget):
        def counted(self, promise: Promise) -> int:
            return 10 * (promise.live or 0)

    monkeypatch.setitem(TARGETS, STRICT.runtime, Greedy())
    shutil.copy(data / "torch_cnn.onnx", "cnn.onnx")
    ran = remat("solve", "cnn.onnx", "--budget", "1.9MB", "--work-limit", "100K")
    assert ran.code == 5
    assert "; try --budget " in ran.err
    assert not Path("cnn.plan.json").exists()


def test_what_was_found_on_the_way_is_placed(data: Path) -> None:
    """A method that comes to nothing after it had a plan."""

    def forgetful(problem: Problem, budget: int, limits: Limits) -> Result:
        found = find_solver("evict", {})(problem, budget, limits)
        limits.report(Progress(0.0, cost=sum(node.cost for node in problem.nodes), order=found.order))
        return Result(Status.UNKNOWN, None)

    asked = replace(question(data / "torch_unet_convt.onnx", 0.8), solver=forgetful, reorder=False)
    found = attempted(asked)
    assert found.found
    assert found.says(PlanNote.MET_EARLIER)
    assert found.promise is not None
    assert found.promise.arena is not None
    assert found.placement is not None
    assert found.promise.arena <= asked.budget
    assert found.schedule.outcome is not None
    beyond = found.schedule.outcome.cost - sum(node.cost for node in asked.subject.problem.nodes)
    assert not attempted(replace(asked, at_hand=beyond)).found  # no better than what is at hand
    assert attempted(replace(asked, at_hand=2 * beyond)).found


@pytest.mark.slow
def test_a_search_that_has_time_places_what_it_finds(data: Path) -> None:
    asked = question(data / "torch_unet_convt.onnx", 0.8, "auto")
    found = attempted(replace(asked, limits=Limits(Clock(600))))
    assert found.found
    assert found.promise is not None
    assert found.promise.arena is not None
    assert found.promise.arena <= asked.budget


def asking(path: Path, keep: Callable[[Answer], None], forgets: bool = True) -> PlanRequest:
    """A search that asks for its order to be made to fit, and then may come to nothing."""

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        found = find_solver("evict", {})(problem, budget, limits)
        assert limits.fit is not None
        assert found.order is not None
        assert run(limits.fit(found.order, limits.clock)) is not None
        return Result(Status.UNKNOWN, None) if forgets else found

    return replace(question(path, 0.8), solver=search, reorder=False, so_far=Hearing(keep))


@pytest.mark.parametrize("forgets", [True, False])
def test_a_plan_is_told_of_as_soon_as_it_fits_and_is_not_placed_again(data: Path, forgets: bool) -> None:
    kept: list[Answer] = []
    asked = asking(data / "torch_unet_convt.onnx", kept.append, forgets)
    found = attempted(asked)
    assert found.found
    assert len(kept) == 1
    assert kept[0].says(PlanNote.STILL_SEARCHING)
    for one in (found, *kept):
        assert one.promise is not None
        assert one.promise.arena is not None
        assert one.promise.arena <= asked.budget
        assert one.cost == found.cost


def test_a_plan_that_was_made_to_fit_explains_itself(data: Path) -> None:
    """What the search said of its parts, of the end and of its bounds is said of the plan that it led to."""
    part, note = Part("dice", 1, 0.5, 1), Note(SolverNote.BOUND_IN_ANY_ORDER)
    asked = asking(data / "torch_unet_convt.onnx", lambda _: None, forgets=False)

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        found = asked.solver(problem, budget, limits)
        return replace(found, found_by="dice", parts=(part,), patience_lost=True, notes=(note,))

    found = attempted(replace(asked, solver=search)).schedule.result
    assert (found.found_by, found.parts, found.patience_lost, found.notes) == ("dice", (part,), True, (note,))


def test_a_leaner_plan_is_not_replaced_by_a_cheaper_one(data: Path) -> None:
    """Where memory is to be least, the model as it is was met first, fits, and costs less than anything."""

    def search(problem: Problem, budget: int, limits: Limits) -> Result:
        limits.report(Progress(0.0, order=tuple(range(len(problem.nodes)))))
        assert limits.fit is None
        leanest = lowest(problem, Limits(limited(moves=1000))).leanest
        assert leanest is not None
        return Result(Status.FEASIBLE, leanest.steps())

    asked = replace(question(data / "torch_unet_convt.onnx", 1.5), solver=search, by_memory=True)
    found = attempted(asked)
    assert found.schedule.outcome is not None
    assert found.schedule.outcome.peak < 0.8 * asked.subject.before().peak


def test_what_goes_wrong_beside_a_search_is_raised(data: Path) -> None:
    def fail(_: Answer) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        attempted(asking(data / "torch_unet_convt.onnx", fail))


def test_a_known_plan_for_less_is_not_outdone_by_a_dearer_one(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "cnn.onnx"
    shutil.copy(data / "torch_cnn.onnx", path)
    small = attempted(question(path, 0.8))
    plan = plan_file(small)
    large = question(path, 0.9, "recompute-all")
    found = attempted(large)
    assert found.schedule.outcome is not None
    assert small.schedule.outcome is not None
    assert found.schedule.outcome.cost > small.schedule.outcome.cost
    better = cheaper_known(large, found, (replace(plan, model=replace(plan.model, sha256="other")), plan))
    assert better.schedule.plan == small.schedule.plan
    assert better.made_by == "milp"
    assert (better.budget, better.method) == (large.budget, "recompute-all")
    tight = question(path, 0.7, "recompute-all")
    assert cheaper_known(tight, found, (plan,)) is found  # it needs more than that
    dearer = plan_file(found)
    first = cheapest_known(large, (dearer, plan))  # before anything is searched for
    assert first is not None
    assert first.schedule.plan == small.schedule.plan
    assert first.placement is not None
    assert cheapest_known(tight, (plan,)) is None
