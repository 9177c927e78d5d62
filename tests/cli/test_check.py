"""Certificates on the command line: made, checked, tampered with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from remat_cli.actions.certifying import Proved, check_plan
from remat_cli.errors import RematError
from remat_cli.formats import certificatefile
from remat_cli.formats.declared import Undeclared
from remat_cli.plans.planned import load_planned
from tests.cli.running import Command

OPTIMUM = 26  # of linear8 within 4 units, whatever its order: linear8.expected.json
SMALLER = 15  # of linear4 within 3


@pytest.fixture
def remat(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(capsys, monkeypatch)


def solved(remat: Command, source: Path, *budget: str) -> None:
    copy(source, source.name)
    plan = f"{source.name.partition('.')[0]}.plan.json"
    asked = remat("solve", source.name, "--budget", *budget, "--certificate", "c.cert.json", "-o", plan)
    assert asked.code in (0, 4), asked


@pytest.mark.parametrize("method", ["auto", "milp"])
def test_both_bounds_of_a_plan(method: str, data: Path, remat: Command) -> None:
    solved(remat, data / "checkmate" / "linear8.problem.json", "4", "--method", method)
    found = remat("check", "c.cert.json", "linear8.plan.json", "--json").object
    assert found["cost"] == found["bound"] == OPTIMUM
    assert found["gap"] == 0
    assert found["bound_any_order"] == (OPTIMUM if method == "auto" else 17)
    said = remat("check", "c.cert.json", "linear8.plan.json").out
    assert f"costs less than {OPTIMUM}ns ({OPTIMUM} ns), " in said


def test_that_there_is_no_plan(data: Path, remat: Command) -> None:
    solved(remat, data / "networks" / "vgg16.problem.json", "40%")
    proved = remat("check", "c.cert.json", "vgg16.problem.json", "--json").object
    assert proved["infeasible"] == "any order" or proved["least_peak"] > 0.4 * 61_816_832


def test_a_model(data: Path, remat: Command) -> None:
    solved(remat, data / "torch_unet_convt.onnx", "75%", "--method", "milp")
    found = remat("check", "c.cert.json", "torch_unet_convt.plan.json", "--json").object
    assert found["bound"] <= found["cost"]
    assert remat("check", "c.cert.json", "torch_unet_convt.onnx").code == 0


def test_another_plan_is_not_what_it_speaks_of(data: Path, remat: Command) -> None:
    solved(remat, data / "checkmate" / "linear4.problem.json", "3")
    Path("c.cert.json").rename("other.cert.json")
    solved(remat, data / "checkmate" / "linear8.problem.json", "4")
    refused = remat("check", "other.cert.json", "linear8.plan.json")
    assert refused.code == 3
    assert "another problem" in refused.err
    solved(remat, data / "checkmate" / "linear8.problem.json", "5")
    Path("linear8.plan.json").rename("five.plan.json")
    Path("c.cert.json").rename("five.cert.json")
    solved(remat, data / "checkmate" / "linear8.problem.json", "4")
    assert remat("check", "c.cert.json", "five.plan.json").code == 6  # a bound for less is none for more
    assert remat("check", "five.cert.json", "linear8.plan.json").code == 0


def mutants(thing: Any) -> Iterator[Any]:
    """The same with one thing in it changed, left out or said twice."""
    if isinstance(thing, dict):
        for name, inner in thing.items():
            yield {key: value for key, value in thing.items() if key != name}
            yield from ({**thing, name: other} for other in mutants(inner))
    elif isinstance(thing, list):
        for place, inner in enumerate(thing):
            yield thing[:place] + thing[place + 1 :]
            yield thing[: place + 1] + thing[place:]
            yield from ([*thing[:place], other, *thing[place + 1 :]] for other in mutants(inner))
    elif isinstance(thing, bool):
        yield not thing
    elif isinstance(thing, int):
        yield from (thing + 1, thing - 1, 2 * thing + 7, None)
    elif isinstance(thing, str):
        yield thing + "x"
    else:
        yield 0


def sealed(data: Any) -> None:
    """Sealed anew, as anyone can, as far as it has the form."""
    given = deepcopy(data)
    del given["seal"]
    with suppress(Undeclared):
        data["seal"] = certificatefile.seal(certificatefile.parse_certificate(given))


@pytest.mark.parametrize("method", ["auto", "milp"])
def test_tampered_with(method: str, data: Path, remat: Command) -> None:
    """As it stands, any change is refused; sealed anew, what is proved is nothing but the truth."""
    solved(remat, data / "checkmate" / "linear4.problem.json", "3", "--method", method)
    written = json.loads(Path("c.cert.json").read_text())
    planned, path, told = load_planned(Path("linear4.plan.json")), Path("tampered.cert.json"), list[Proved]()
    for mutant in mutants(written):
        path.write_text(json.dumps(mutant))
        with pytest.raises(RematError):
            certificatefile.read(path)
        if "seal" not in mutant:
            continue
        sealed(mutant)
        path.write_text(json.dumps(mutant))
        with suppress(RematError):
            told.append(check_plan(certificatefile.read(path), planned))
    assert all((proved.bound or 0) <= SMALLER for proved in told)
    assert all((proved.least_peak or 0) <= 3 for proved in told)
    assert not any(proved.infeasible for proved in told)
    assert len(told) < 0.2 * sum(1 for _ in mutants(written))
