"""Who asks for JSON gets JSON when it goes wrong too: one object with `error`, and the same exit code as without."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.running import Command


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx"))


NONE = {
    "grad": ["none.onnx"],
    "profile": ["none.onnx"],
    "solve": ["none.onnx", "--budget", "50%"],
    "sweep": ["none.onnx"],
    "max-batch": ["none.onnx", "--budget", "1GB"],
    "emit": ["none.plan.json"],
    "verify": ["none.plan.json"],
    "check": ["none.cert.json", "none.plan.json"],
    "show": ["none.plan.json"],
    "problem": ["none.onnx"],
    "batch": ["none.yaml"],
}


@pytest.mark.parametrize("command", NONE)
def test_a_file_that_there_is_not(remat: Command, command: str) -> None:
    plain, told = remat(command, *NONE[command]), remat(command, *NONE[command], "--json")
    assert plain.code == told.code == 3
    assert told.object == {"error": {"code": 3, "kind": "bad input", "says": told.err.strip().removeprefix("remat: ")}}
    assert (plain.out, plain.err) == ("", told.err)


@pytest.mark.parametrize("command", [*NONE, "zoo"])
def test_a_flag_that_there_is_not(remat: Command, command: str) -> None:
    told = remat(command, *NONE.get(command, ["cnn"]), "--json", "--no-such-flag")
    assert told.code == 2
    assert told.object["error"]["kind"] == "usage"
    assert told.object["error"]["says"] == told.err.strip()


def test_a_network_that_there_is_not(remat: Command) -> None:
    told = remat("zoo", "resnet51", "--json")
    assert told.object["error"]["says"] == "there is no network called resnet51; did you mean resnet50?"


@pytest.mark.slow
def test_what_does_not_fit(remat: Command, model: Path) -> None:
    told = remat("solve", model, "--budget", "1KB", "--json")
    error = told.object["error"]
    assert (told.code, error["code"], error["kind"]) == (4, 4, "infeasible")
    assert error["says"] == told.err.strip().removeprefix("remat: ")
    assert error["least_peak"] > 1000
    assert told.object["status"] == "infeasible"
    swept = remat("sweep", model, "--budgets", "1KB", "--methods", "evict", "--json")
    assert (swept.code, swept.object["error"]["kind"]) == (4, "infeasible")  # inputs alone are more
    every = remat("solve", model, "--budget", "1KB", "--method", "all", "--json", "--time-limit", "1s")
    assert every.code == every.object["error"]["code"]


def test_a_method_that_there_is_not_is_answered_with_the_nearest(remat: Command, model: Path) -> None:
    for words in (["solve", model, "--budget", "80%", "--method", "evct"], ["sweep", model, "--methods", "evct"]):
        told = remat(*words, "--json")
        assert told.object["error"] == {
            "code": 2,
            "kind": "usage",
            "says": "there is no method 'evct'; did you mean evict?",
        }


def test_a_promise_that_fails(remat: Command, model: Path) -> None:
    assert remat("solve", model, "--budget", "95%", "--method", "evict", "-q").code == 0
    (plan,) = Path().glob("*.plan.json")
    assert remat("emit", plan, "-q").code == 0
    (made,) = Path().glob("*.remat.onnx")
    shutil.copy(model, "other.onnx")
    told = remat("verify", plan, "--model", "other.onnx", "--json")
    assert told.code == told.object["error"]["code"] != 0
    assert made.is_file()


def test_show_may_be_quiet(remat: Command, model: Path) -> None:
    ran = remat("show", model, "-q", "--html", "m.html")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert Path("m.html").is_file()


def test_a_sweep_goes_into_a_file(remat: Command, model: Path) -> None:
    words = ("sweep", model, "--budgets", "100%,90%", "--methods", "evict", "--work-limit", "100k")
    told = remat(*words, "-o", "curve.json", "--json").object
    assert json.loads(Path("curve.json").read_text()) == told
    assert remat(*words, "-o", "curve.json").out.strip().endswith("wrote curve.json")
    assert remat("show", model, "--html", "m.html", "--curve", "curve.json", "-q").code == 0
    Path("file").write_text("mine")
    for place in ("file", "nowhere/curve.json", "m.onnx/x.json"):
        ran = remat(*words, "-o", place)
        assert (ran.code, len(ran.err.splitlines())) == (3, 1), ran.err
    assert Path("file").read_text() == "mine"


def test_a_bug_of_ours_is_an_object_too(remat: Command, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise AssertionError("it cannot be")

    monkeypatch.setattr("remat_cli.commands.solve_answer.answer_whole", fails)
    told = remat("solve", model, "--budget", "50%", "--json")
    says = "this is a bug in remat, please report the lines above: AssertionError: it cannot be"
    assert (told.code, told.object) == (1, {"error": {"code": 1, "kind": "bug", "says": says}})
    assert "Traceback" in told.err
    assert told.err.endswith(f"remat: {says}\n")
