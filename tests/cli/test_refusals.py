"""What a refusal says: one line, in the unit asked, with a budget that is enough; at once, where it can be."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import remat_cli as api
from remat_cli.actions import solving
from remat_cli.actions.questions import kind_named
from remat_cli.commands import solve
from remat_cli.commands.solve import settled
from remat_cli.commands.solve_answer import LatestPlan, Place, question_of
from remat_cli.errors import RematError
from remat_cli.model.quantities import Budget, parse_budget
from remat_cli.planning.loading import load_subject
from remat_cli.planning.search import graphs
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.search.attempt import Policy
from remat_cli.planning.search.request import PlanRequest
from remat_cli.planning.search.so_far import SoFar
from remat_cli.planning.search.untouched import share_base
from solvers.clock import limited
from solvers.methods.auto import leanest
from solvers.orders.best import Best
from solvers.orders.bounds import PeakBound
from solvers.pebbles.floor import dig
from solvers.problem import Limits
from tests.cli.running import Command
from tests.sampling import few


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx"))


@pytest.mark.parametrize("unit", few(["%", "MB", "MiB", "KB", ""], 1))
def test_a_proved_no_is_one_line_in_the_unit_asked_and_what_it_says_is_enough(
    unit: str, remat: Command, model: Path
) -> None:
    budget = {"%": "50%", "MB": "1.2MB", "MiB": "1.1MiB", "KB": "1200KB", "": "1200000"}[unit]
    ran = remat("solve", model, "--budget", budget, "--work-limit", "20K")
    assert (ran.code, len(ran.err.splitlines())) == (4, 1)
    said = re.search(r"at least (.*) is needed; try --budget ([^;\s]+)(; in pieces .*)?$", ran.err.strip())
    assert said, ran.err
    least, enough = said[1], said[2]
    assert enough.endswith(unit)
    assert ("%" in least) is (unit == "%")
    again = remat("solve", model, "--budget", enough, "--work-limit", "20K", "--json", "-o", "m.plan.json")
    assert again.code == 0, again.err
    more = remat("solve", model, "--budget", budget, "--work-limit", "20K", "-v")
    assert len(more.err.splitlines()) > 1


@pytest.mark.parametrize(
    "name, budget", few([("torch_mlp", "50%"), ("torch_cnn", "34%"), ("torch_unet_convt", "34%")], 1, True)
)
def test_in_stock_sessions_a_plan_is_enough_and_not_the_model_as_it_is(name: str, budget: str, data: Path) -> None:
    """The graph that the session runs has leaner models than the ops of the file, which alone were looked at."""
    model = data / f"{name}.onnx"
    with pytest.raises(api.Infeasible) as refused:
        api.solve(model, budget=budget, runtime="stock", work_limit=20_000, cache=False)
    enough = refused.value.least_peak
    assert enough is not None
    kind = kind_named("stock")
    assert enough < 0.9 * share_base(load_subject(model, None, {}, kind), kind)
    again = api.solve(model, budget=enough, runtime="stock", work_limit=1_000, cache=False)
    assert again.peak is not None
    assert again.peak <= enough
    assert api.verify(again).ok


def test_a_share_is_of_what_was_asked_about_whatever_graph_was_planned_last(remat: Command, model: Path) -> None:
    """In default sessions the graph that runs is asked about, and the file's own ops are planned after it."""
    kind = kind_named("stock")
    whole = share_base(load_subject(model, None, {}, kind), kind)
    with pytest.raises((api.Infeasible, api.NoPlan)) as refused:
        api.solve(model, budget="30%", runtime="stock", work_limit=50_000, cache=False)
    said = re.search(r"at least ([\d.]+)% \(([\d.]+)MB\)", str(refused.value))
    assert said, refused.value
    assert float(said[1]) == pytest.approx(100e6 * float(said[2]) / whole, rel=1e-3)


@pytest.mark.parametrize(
    "wrong, meant",
    [("0.7", "70%"), (".65", "65%"), ("0.125", "12.5%"), ("1.5", "1.5GB"), ("0.7%", None), ("1.0", None)],
)
def test_shares_that_are_written_as_numbers_are_asked_about(wrong: str, meant: str | None, model: Path) -> None:
    if meant is None:
        assert isinstance(parse_budget(wrong), Budget)
        return
    with pytest.raises(ValueError, match=f"did you mean '{re.escape(meant)}'"):
        parse_budget(wrong)
    with pytest.raises(api.Usage, match=f"did you mean '{re.escape(meant)}'"):
        api.solve(model, budget=float(wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", ["remat", "stock"])
def test_a_budget_below_inputs_and_weights_is_refused_before_any_search(
    runtime: str, remat: Command, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(request: PlanRequest) -> None:
        raise AssertionError("there was a search")

    monkeypatch.setattr(solving, "cheapest", searched)
    ran = remat("solve", model, "--budget", 17, "--runtime", runtime)
    assert ran.code == 4
    assert "alone take" in ran.err
    assert "did you mean 17% or 17GB?" in ran.err
    with pytest.raises(api.Infeasible, match="alone take") as none:
        api.solve(model, budget="17B", runtime=runtime)
    monkeypatch.undo()
    assert api.solve(model, budget=none.value.least_peak, runtime=runtime, cache=False, work_limit=20_000).peak


def test_a_forward_model_is_told_what_makes_a_step_of_it(remat: Command) -> None:
    assert remat("zoo", "unet", "--batch", "1", "--image", "32", "--width", "4", "-o", "f.onnx", "-q").code == 0
    ran = remat("solve", "f.onnx", "--budget", "10%", "--work-limit", "10K")
    assert ran.code == 4
    assert "`remat grad f.onnx`" in ran.err
    assert remat("grad", "f.onnx", "-o", "t.onnx", "-q").code == 0
    ran = remat("solve", "t.onnx", "--budget", "10%", "--work-limit", "10K")
    assert (ran.code, "remat grad" in ran.err) == (4, False)


def test_after_a_proof_the_leanest_order_is_sought_once(
    remat: Command, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search that refuses says by it how small a budget would do, and the plan of last resort is made of it."""
    found: list[int] = []

    def dig_and_tell(best: Best, known: int, limits: Limits) -> PeakBound:
        found.append(known)
        return dig(best, known, limits)

    monkeypatch.setattr(leanest, "dig", dig_and_tell)
    ran = remat("solve", model, "--budget", "50%", "--work-limit", "20K")
    assert (ran.code, len(found)) == (4, 1)


def test_what_is_enough_is_said_if_time_ends_after_it_is_known(model: Path) -> None:
    """Of a proved no the last words said a larger budget than was known by then."""
    given = solve.command.make_context("solve", [str(model), "--budget", "50%"]).params
    flags = settled({name: value for name, value in given.items() if name != "model"})
    subject, known = load_subject(model, None, {}, kind_named("remat")), SoFar()
    found = solving.ask(subject, question_of(flags), Limits(limited(moves=20_000)), None, known)
    assert known.refused is not None
    assert known.refused.enough == found.enough is not None


def test_a_proved_no_is_said_if_time_ends_while_a_budget_that_is_enough_is_sought(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command whose time is up in there knows the proof, and said that more time was needed."""
    given = solve.command.make_context("solve", [str(model), "--budget", "50%"]).params
    flags = settled({name: value for name, value in given.items() if name != "model"})
    subject, question, limits = load_subject(model, None, {}, kind_named("remat")), question_of(flags), Limits()
    known = SoFar()
    latest = LatestPlan(question, known, Place(model.with_suffix(".plan.json"), subject), flags, limits, lambda _: None)
    errors: list[RematError | None] = []

    def out_of_time(request: PlanRequest, found: Answer) -> Policy:
        errors.append(latest.last_words(False))
        yield from ()
        return found

    monkeypatch.setattr(graphs, "last_resort", out_of_time)
    solving.ask(subject, question, Limits(), None, known)
    assert [error and error.code for error in errors] == [4]
    assert re.search(r"fits 50%, which is proved: at least [\d.]+% .* is needed", capsys.readouterr().err)


def test_before_a_plan_is_witnessed_the_model_as_it_is_is_enough(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In stock sessions an order was named by what it was foretold to hold, of which no model had been made."""
    refused: list[Answer | None] = []
    kind, known = kind_named("stock"), SoFar()
    given = solve.command.make_context("solve", [str(model), "--budget", "20%", "--runtime", "stock"]).params
    flags = settled({name: value for name, value in given.items() if name != "model"})
    subject = load_subject(model, None, {}, kind)

    def out_of_time(request: PlanRequest, found: Answer) -> Policy:
        refused.append(known.refused)
        yield from ()
        return found

    monkeypatch.setattr(graphs, "last_resort", out_of_time)
    solving.ask(subject, question_of(flags), Limits(limited(moves=20_000)), None, known)
    assert [answer and answer.enough for answer in refused] == [share_base(subject, kind)]


@pytest.mark.parametrize(
    "words", ["solve {} --budget 50%", "grad {}", "max-batch {} --budget 1GB", "emit {}", "solve m.onnx --costs {}"]
)
def test_a_name_that_no_file_can_have_is_said_to_be_that(words: str, remat: Command, model: Path) -> None:
    """What is to be read cannot be said not to be written."""
    ran = remat(*words.format("x" * 300).split())
    assert ran.code == 2
    assert "no file can be called 'xxx" in ran.err
