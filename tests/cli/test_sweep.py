"""`remat sweep`: curves held against known optima and against single solves, and what is left of one that is killed."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx
import pytest
from onnx import TensorProto, helper

import remat_cli
from remat_cli.actions import sweeping
from remat_cli.formats import planfile, problemfile
from remat_cli.model.quantities import parse_budget, parse_budgets
from remat_cli.planning.loading import load_subject
from remat_cli.plans.points import Point
from solvers.problem import Limits, Status
from tests.ample import ample
from tests.cli.running import Command


def curves(answer: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for point in answer["points"]:
        found.setdefault(point["method"], []).append(point)
    return found


def check_monotone(points: list[dict[str, Any]]) -> None:
    """From the largest budget to the smallest: never cheaper, never a lower bound, and nothing after an impossible."""
    assert [point["budget"] for point in points] == sorted((p["budget"] for p in points), reverse=True)
    for larger, smaller in pairwise(points):
        if larger["cost"] is None:
            assert smaller["cost"] is None
        if smaller["cost"] is not None:
            assert smaller["cost"] >= larger["cost"]
            assert smaller["peak"] <= smaller["budget"]
        if larger["bound_any_order"] is not None:
            assert smaller["bound_any_order"] >= larger["bound_any_order"]
        if larger["status"] == "infeasible":
            assert smaller["status"] == "infeasible"


def test_a_chain_has_the_optima_that_are_known(remat: Command, data: Path) -> None:
    known = json.loads((data / "checkmate" / "linear8.expected.json").read_text())
    optima = {int(budget): cost for budget, cost in known["optimum by budget, over all orders with repeats"].items()}
    chain = data / "checkmate" / "linear8.problem.json"
    answer = remat(
        "sweep", chain, "--budgets", "2,3..10/8", "--methods", "auto,chen-sqrt", "--time-limit", "30m", "--json"
    ).object
    found = curves(answer)
    assert {point["budget"]: point["cost"] for point in found["auto"]} == {**optima, 2: None}
    assert {point["status"] for point in found["auto"][:-1]} == {"optimal"}
    assert found["auto"][-1]["status"] == "infeasible"
    assert answer["least_peak"] == 3
    assert answer["knee"]["budget"] == min(optima, key=lambda budget: budget * optima[budget])
    for points in found.values():
        check_monotone(points)


def test_a_search_is_no_dearer_than_any_other_method(remat: Command, data: Path, tmp_path: Path) -> None:
    network = data / "networks" / "unet.problem.json"
    names = "auto,milp,ap-greedy,linearized-greedy,checkpoint-all"
    ran = remat(
        "sweep", network, "--methods", names, "--work-limit", "200k", "--budgets", "/4", "--json", "-o", "plans"
    )
    found = curves(ran.object)
    assert list(found) == names.split(",")
    for points in found.values():
        check_monotone(points)
        for point, *others in zip(found["auto"], *(found[name] for name in found), strict=True):
            assert point["cost"] is not None
            assert all(other["cost"] is None or point["cost"] <= other["cost"] for other in others)
    named = problemfile.read(network)
    for point in ran.object["points"]:
        if point["plan"]:
            plan = planfile.read(Path(point["plan"]))
            _, outcome = planfile.replay(plan, named.problem, named.nodes, named.values)
            assert (outcome.cost, outcome.peak) == (point["cost"], point["peak"])
            assert plan.budget == point["budget"]
    assert len(list(Path("plans").iterdir())) == sum(point["cost"] is not None for point in ran.object["points"])


def test_tables_and_pictures_say_the_same(
    remat: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path / "results"))
    asked = (
        "sweep",
        data / "torch_cnn.onnx",
        "--methods",
        "evict,chen-sqrt",
        "--budgets",
        "70%..100%/3",
        "--time-limit",
        "9m",
    )
    answer = remat(*asked, "--json").object
    assert all(point["arena"] <= point["budget"] for point in answer["points"] if point["cost"] is not None)
    rows = list(csv.DictReader(io.StringIO(remat(*asked, "--csv", "--plot", "a.png").out)))
    for row, point in zip(rows, answer["points"], strict=True):
        for name in ("method", "status", "budget", "peak", "cost", "overhead"):
            assert row[name] == ("" if point[name] is None else str(point[name]))
    ran = remat(*asked, "--md", "--plot", "curve.svg")
    body = [line for line in ran.out.splitlines() if line.startswith("|")][2:]
    assert len(body) == len(answer["points"])
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    drawn = ElementTree.parse("curve.svg").getroot()
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}use"))) > 3
    before = Path("curve.svg").read_bytes()
    assert remat(*asked, "-q", "--plot", "curve.svg").out == ""
    assert Path("curve.svg").read_bytes() == before


@pytest.mark.slow
def test_what_was_found_before_it_was_killed_is_not_looked_for_again(
    remat: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    monkeypatch.setenv("REMAT_RESULTS", str(results))
    asked = [
        "sweep",
        str(data / "networks" / "unet.problem.json"),
        "--budgets",
        "95%,85%,50%,45%",
        "--work-limit",
        "2M",
    ]
    command = [sys.executable, "-m", "remat_cli", *asked]
    environment = {**os.environ, "PYTHONPATH": str(Path(remat_cli.__file__).parents[1])}
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    while len(list(results.glob("*/*.json"))) < 2 and child.poll() is None:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    points = remat(*asked, "--json").object["points"]
    assert [point["cached"] for point in points[:2]] == [True, True]
    assert all(point["cost"] is not None for point in points)
    check_monotone(points)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--methods", "auto,bogus"), "no method 'bogus'"),
        (("--methods", "auto,auto"), "named twice"),
        (("--budgets", "30%..100%"), "write 30%..100%/8"),
        (("--budgets", "30%..100%/1"), "write 30%..100%/8"),
        (("--budgets", "lots"), "is not a size"),
        (("--plot", "curve.txt"), "is no picture"),
        (("--allocator", "arena"), "plans for a capped arena are made no more"),
        (("--runtime", "remat", "--session", "default"), "contradict each other"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(remat: Command, data: Path, given: tuple[str, ...], says: str) -> None:
    ran = remat("sweep", data / "checkmate" / "linear8.problem.json", *given)
    assert ran.code == 2
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1


def test_nothing_fits(remat: Command, data: Path) -> None:
    ran = remat("sweep", data / "checkmate" / "linear8.problem.json", "--budgets", "1,2")
    assert ran.code == 4
    assert "the least peak of an order is 3 bytes" in ran.err


@pytest.mark.slow
def test_what_is_measured_is_every_model(remat: Command, data: Path, tmp_path: Path) -> None:
    asked = ("sweep", data / "torch_cnn.onnx", "--methods", "evict,chen-sqrt", "--budgets", "80%,100%", "--measure")
    answer = remat(*asked, "--json", "--plot", "ran.svg").object
    ran = [point["measured"] for point in answer["points"] if point["cost"] is not None]
    assert len(ran) >= 2
    for one in (answer["measured"], *ran):
        assert one["ns"] > 0
        assert one["steps_per_second"] == pytest.approx(1e9 / one["ns"])
        assert one["held"] > answer["resident"]
    assert all(point["measured"] is None for point in answer["points"] if point["cost"] is None)
    assert remat("sweep", data / "checkmate" / "linear8.problem.json", "--budgets", 8, "--measure").code == 2


def test_a_plan_is_not_lost_to_a_point_that_needed_no_search(data: Path) -> None:
    subject = load_subject(data / "checkmate" / "linear8.problem.json", None, {})
    asked = sweeping.SweepQuestion(budgets=parse_budgets("100%"))
    sweep = sweeping.Sweep(subject, asked, Limits(ample()))
    (found,) = sweep.run().points
    sweep.points.append(Point(budget=found.budget, method=found.method, status=Status.UNKNOWN))
    assert [point.plan for point in sweep.curve().points] == [found.plan]


def test_the_least_budget_that_is_printed_is_enough(remat: Command, data: Path) -> None:
    """It is what the plan's process holds, not what is live at once."""
    model = data / "torch_cnn.onnx"
    curve = remat("sweep", model, "--budgets", "100%,80%,70%", "--methods", "evict", "--json", "-o", "curve").object
    least = curve["least_peak"]
    assert least >= min(point["peak"] for point in curve["points"] if point["peak"])
    assert f"(--budget {least})" in remat("sweep", model, "--budgets", "100%,80%,70%", "--methods", "evict").out
    found = remat("solve", model, "--budget", least, "--method", "evict", "--json", "--force", "-o", "x.plan.json")
    assert found.code == 0
    assert max(found.object["arena"], found.object["live"]) <= least


def test_a_budget_in_brackets_is_enough(remat: Command, data: Path) -> None:
    """The least that is printed is no more than the plan that a point without one knows of."""
    asked = ("--budgets", "100%,40%", "--work-limit", "3000")
    curve = remat("sweep", data / "torch_cnn.onnx", *asked, "--json").object
    needs = curve["points"][1]["least_peak"]
    assert curve["least_peak"] == needs < curve["whole"]
    out = remat("sweep", data / "torch_cnn.onnx", *asked).out
    row = next(line for line in out.splitlines() if "infeasible" in line or "unknown" in line)
    shown = row[row.index("(") + 1 : row.index(")")]
    assert needs <= parse_budget(shown).amount < 1.01 * needs
    assert remat("solve", data / "torch_cnn.onnx", "--budget", shown, *asked[2:], "-o", "x.plan.json").code == 0


def test_no_point_of_a_curve_in_pieces_is_dearer_than_with_whole_ops(tmp_path: Path) -> None:
    """With room for everything nothing needs to be cut, and what was cut for the least budget costs more."""
    path = tmp_path / "m.onnx"
    sizes = {"x": [64, 16], "in": [16, 2048], "out": [2048, 16], "y": [64, 16]}
    *given, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in sizes.items())
    wide = [helper.make_node("MatMul", ["x", "in"], ["h"]), helper.make_node("Relu", ["h"], ["r"])]
    graph = helper.make_graph([*wide, helper.make_node("MatMul", ["r", "out"], ["y"])], "wide", given, [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    curve = remat_cli.sweep(path, budgets="60%,100%", pieces="auto", work_limit=20_000, cache=False)
    roomy, tight = curve.points
    assert curve.subject.pieces is not None
    assert (roomy.overhead, tight.plan and bool(tight.plan.pieces)) == (0, True)
    planned = curve.planned(roomy)
    assert planned is not None
    assert planned.subject.pieces is None
    assert planned.replayed()
