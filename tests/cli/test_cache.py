"""What was found before is not looked for again: `solve` with its results kept, and `remat cache`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.running import Command, Ran


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for results of the test's own."""
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def chain(data: Path, tmp_path: Path, kept: Path) -> Path:
    return Path(shutil.copy(data / "checkmate" / "linear8.problem.json", tmp_path / "linear8.problem.json"))


def solved(remat: Command, *args: object) -> Ran:
    ran = remat("solve", *args, "--json", "-o", "x.plan.json")
    assert ran.code in (0, 4), ran.err
    return ran


def test_an_answer_that_is_kept_is_the_answer(remat: Command, chain: Path) -> None:
    asked = (chain, "--budget", 4, "--method", "milp")
    first = solved(remat, *asked)
    plan = Path("x.plan.json").read_bytes()
    Path("x.plan.json").unlink()
    second = solved(remat, *asked)
    assert (first.object["cached"], second.object["cached"]) == (False, True)
    assert Path("x.plan.json").read_bytes() == plan
    times = ("cached", "wall_seconds", "seconds")
    assert {k: v for k, v in first.object.items() if k not in times} == {
        k: v for k, v in second.object.items() if k not in times
    }
    assert not solved(remat, *asked, "--force").object["cached"]


def test_a_model_and_its_promises_are_the_same(remat: Command, data: Path, kept: Path) -> None:
    asked = ("solve", data / "torch_cnn.onnx", "--budget", "80%", "-q", "--method", "evict")
    assert remat(*asked, "-o", "a.plan.json").code == 0
    assert len(list(kept.glob("*/*"))) == 1
    assert remat(*asked, "-o", "b.plan.json").code == 0
    assert Path("a.plan.json").read_bytes() == Path("b.plan.json").read_bytes()


@pytest.mark.slow
def test_that_a_method_found_nothing_is_kept(remat: Command, data: Path, kept: Path) -> None:
    asked = (data / "torch_cnn.onnx", "--budget", "80%", "--method", "checkpoint-all", "--work-limit", "10k", "--json")
    first, second = (remat("solve", *asked) for _ in range(2))
    assert (first.code, second.code) == (5, 5)
    assert (first.object["cached"], second.object["cached"]) == (False, True)


def test_a_proof_that_there_is_no_plan_is_kept(remat: Command, chain: Path) -> None:
    first, second = (solved(remat, chain, "--budget", 2) for _ in range(2))
    assert second.object["cached"]
    assert (second.code, second.object["least_peak"], second.err) == (4, first.object["least_peak"], first.err)


def test_what_was_not_proved_stands_in_for_no_longer_search(remat: Command, chain: Path) -> None:
    asked = (chain, "--budget", 6, "--method", "chen-greedy", "--time-limit")
    assert solved(remat, *asked, "5m").object["status"] == "feasible"
    assert [solved(remat, *asked, limit).object["cached"] for limit in ("5m", "4m", "6m", "6m", "5m")] == [
        *(True, True, False, True, True)
    ]
    for limit, cached in (("5m", False), ("10m", True)):  # a proof stands for good
        assert solved(remat, chain, "--budget", 4, "--time-limit", limit).object["cached"] == cached


@pytest.mark.parametrize(
    "changed",
    [("--budget", 7), ("--seed", 1), ("--gap", "1%"), ("--method", "chen-greedy"), ("--runtime", "stock")],
    ids=lambda pair: pair[0],
)
def test_another_question_has_its_own_answer(remat: Command, chain: Path, changed: tuple[object, ...]) -> None:
    solved(remat, chain, "--budget", 6, "--method", "evict")
    assert not solved(remat, chain, "--budget", 6, "--method", "evict", *changed).object["cached"]


def test_another_model_or_version_has_its_own_answer(
    remat: Command, chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (chain, "--budget", 6, "--method", "evict")
    solved(remat, *asked)
    chain.write_text(chain.read_text().replace('"cost": 1', '"cost": 2', 1))
    assert not solved(remat, *asked).object["cached"]
    assert solved(remat, *asked).object["cached"]
    monkeypatch.setattr("remat_cli.results.memory.versions", lambda: {"remat": "another"})
    assert not solved(remat, *asked).object["cached"]


def test_a_damaged_entry_is_passed_over_and_said(remat: Command, chain: Path, kept: Path) -> None:
    solved(remat, chain, "--budget", 6, "--method", "evict")
    (entry,) = kept.glob("*/*")
    entry.write_bytes(entry.read_bytes().replace(b'"order": [', b'"order": [0, '))
    assert remat("cache", "check").code == 3
    ran = solved(remat, chain, "--budget", 6, "--method", "evict")
    assert not ran.object["cached"]
    assert "is passed over" in ran.err
    assert remat("cache", "check").code == 0  # and has been replaced
    assert solved(remat, chain, "--budget", 6, "--method", "evict").object["cached"]


def test_list_and_prune(remat: Command, chain: Path, kept: Path) -> None:
    for budget in (6, 7):
        solved(remat, chain, "--budget", budget, "--method", "evict")
    listed = remat("cache", "list", "--json").object
    assert [(entry["budget"], entry["model"]) for entry in listed["entries"]] == [(7, chain.name), (6, chain.name)]
    assert "evict" in remat("cache", "list").out
    assert remat("cache", "prune", "--json").object["removed"] == []
    assert len(remat("cache", "prune", "--json", "--max-size", listed["entries"][0]["bytes"]).object["removed"]) == 1
    assert solved(remat, chain, "--budget", 7, "--method", "evict").object["cached"]
    assert len(remat("cache", "prune", "--all", "--json").object["removed"]) == 1
    assert list(kept.glob("*/*")) == []
