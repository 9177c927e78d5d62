"""Nothing is called impossible without a proof in hand, and what a model does as it is, is never refused."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import onnx
import pytest

import remat_cli as remat
from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.errors import NoSchedule
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import DEFAULT
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.proofs import of_all_pieces
from remat_cli.planning.targets.candidate import Candidate
from remat_cli.plans.keeping import plan_file
from remat_cli.plans.planned import Planned
from remat_cli.saying.report import proof_line
from solvers.clock import limited
from solvers.orders.best import Best
from solvers.orders.bounds import PeakBound
from solvers.problem import Impossible, Limits, Node, Problem, Result, Status
from solvers.schedule import Schedule

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS: dict[str, dict[str, Any]] = {
    "remat": {"runtime": "remat"},
    "stock": {"runtime": "stock"},
    "in pieces": {"runtime": "remat", "pieces": "exact"},
}
QUICKLY: dict[str, Any] = {"work_limit": 2000, "cache": False}
MODELS = Path(__file__).parents[2] / "data" / "onnx_tests"  # of `onnx.backend.test`
REFUSED_ONCE = (  # each was told that nothing fits, "which is proved", or crashed
    "dropout_default_mask",  # its least peak of 560 B was proved to be needed, and refused at 560 B
    "gelu_default_1_expanded",  # 7.389% was needed, and 100% refused: constants that no plan needs were added
    "nllloss_NCd1d2_with_weight_reduction_sum_ii",
    "castlike_FLOAT_to_DOUBLE",  # written out, it held more than the file does
    "qlinearmatmul_3D_uint8_float16",  # an order of one graph was tried on another, which has fewer ops
    "flexattention_gqa_expanded_ver26",  # what is live in the file's order was more than what 100% was a share of
)


def test_a_bound_within_the_budget_proves_nothing() -> None:
    for least in (99, 100):
        with pytest.raises(ValueError, match="may fit"):
            Impossible(100, least)
    with pytest.raises(ValueError, match="only a proof"):
        Result(Status.INFEASIBLE, None)
    with pytest.raises(ValueError, match="only a proof"):
        Result(Status.UNKNOWN, None, impossible=Impossible(100, 101))


def test_a_peak_within_the_budget_is_no_proof_unless_all_was_searched() -> None:
    bound = PeakBound(80, None, ())
    assert bound.against(80) is None
    assert bound.against(79) == Impossible(79, 80)
    assert bound.against(90, searched=True) == Impossible(90, 91)
    assert Result(Status.UNKNOWN, None, peak_bound=80).refuted(Impossible(90, 91, in_order=True)).needed == 80


def test_an_order_of_another_problem_is_no_order() -> None:
    best = Best(Problem((Node(1, (), (0,)),), (8,), (0,)), 8, Limits())
    assert best.weigh((0, 1)) is None
    assert best.weigh((-1, 0)) is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED_ONCE)
def test_what_fits_as_it_is_has_a_plan(name: str, way: str) -> None:
    plan = remat.solve(MODELS / f"{name}.onnx", budget="100%", **WAYS[way], **QUICKLY)
    assert plan.status == "optimal"
    assert plan.overhead == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["dropout_default_mask", "castlike_FLOAT_to_DOUBLE", "qlinearmatmul_3D_uint8_float16"])
def test_the_least_peak_is_reached_and_half_of_it_is_refused_with_more(name: str, way: str) -> None:
    model = MODELS / f"{name}.onnx"
    least = remat.solve(model, minimize="peak", **WAYS[way], **QUICKLY)
    assert remat.solve(model, budget=least.budget, **WAYS[way], **QUICKLY).budget == least.budget
    with pytest.raises(NoSchedule) as refused:
        remat.solve(model, budget=least.budget // 2, **WAYS[way], **QUICKLY)
    assert refused.value.least_peak is not None
    assert refused.value.least_peak > least.budget // 2


def test_a_plan_of_the_file_s_own_ops_is_known_where_others_are_planned() -> None:
    """It was refused as a plan of another model, though the least peak had just been found with it."""
    model, asked = MODELS / "group_normalization_epsilon.onnx", {**WAYS["stock"], **QUICKLY}
    by_file = load_subject(onnx.load(model), None, {}, DEFAULT).own
    plan, outcome = by_file.as_it_is()
    result = Result(Status.FEASIBLE, plan.order())
    candidate = Candidate(by_file, Schedule(result, plan, outcome))
    found = Answer(candidate, "auto", 10_000, 0.0, Limits(), DEFAULT)
    known = Planned(plan_file(found), by_file)
    assert known.recorded.graph == "file"
    least = remat.solve(onnx.load(model), minimize="peak", **asked)
    assert remat.solve(onnx.load(model), budget=least.budget, known=[known, least], **asked).cost <= least.cost


def test_what_whole_ops_need_proves_nothing_of_ops_in_pieces() -> None:
    """The least peak of this model in pieces was refused when it was asked for: by walks no pieces came near."""
    path = MODELS / "rms_normalization_4d_axis3_expanded.onnx"
    asked = {"pieces": "exact", "work_limit": 20_000, "cache": False}
    least = remat.solve(path, minimize="peak", **asked)
    assert least.recorded.pieces
    with suppress(remat.NoPlan):  # it may not be found, but it is not called impossible
        assert remat.solve(path, budget=least.budget, **asked).budget == least.budget


def test_a_plan_in_other_pieces_is_known_where_pieces_are_chosen() -> None:
    """Within so little work other pieces are chosen, in which nothing is found."""
    path = MODELS / "rms_normalization_4d_axis3_expanded.onnx"
    least = remat.solve(path, minimize="peak", pieces="exact", work_limit=20_000, cache=False)
    hurried = {"pieces": "exact", "work_limit": 1, "cache": False}
    with pytest.raises(remat.NoPlan):
        remat.solve(path, budget=least.budget, **hurried)
    found = remat.solve(path, budget=least.budget, known=[least], **hurried)
    assert (found.recorded.pieces, found.cost) == (least.recorded.pieces, least.cost)
    with pytest.raises(remat.Infeasible):  # these pieces are not the ones that are asked for
        remat.solve(path, budget=least.budget, known=[least], **{**hurried, "pieces": "off"})


def test_the_least_of_whole_ops_is_not_called_the_least_of_any_pieces() -> None:
    """In pieces this model holds 788 bytes, though it was said that no plan holds less than 1,020."""
    subject = load_subject(MODELS / "gelu_default_2_expanded.onnx", None, {})
    whole = ask(subject, Question(minimize="peak"), Limits(limited(moves=1000)))
    assert (whole.status, whole.budget) == (Status.OPTIMAL, 1020)
    assert of_all_pieces(whole, cuts=False, by_memory=True) is whole
    either = of_all_pieces(whole, cuts=True, by_memory=True)
    assert either.status is Status.FEASIBLE
    assert (either.schedule.result.needed or 0) + either.aside <= 788


def test_it_is_said_of_which_schedules_something_is_proved() -> None:
    subject = load_subject(MODELS / "gelu_default_2_expanded.onnx", None, {})
    found = ask(subject, Question(budget=Budget(Fraction(2), relative=True)), Limits(limited(moves=1000)))
    either = replace(found, asked={"pieces": "auto"})
    some = either.about(replace(subject, pieces={"exact": True}))
    said = [proof_line(one, least_memory=False).partition(":")[0] for one in (found, either, some)]
    assert said == ["Proved", "Proved, of whole ops", "Proved, of ops in these pieces"]
