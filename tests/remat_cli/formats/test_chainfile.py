"""Chains in Rotor's form, through `solve` and `problem --chain`: costs and peaks are those of Rotor's own rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remat_cli.errors import BadInput
from remat_cli.formats import problemfile
from solvers.methods.chains.chain import simulate
from solvers.methods.chains.rotor import rotor
from solvers.problem import Limits, Status
from solvers.registry import METHODS
from solvers.schedule import baseline, schedule
from tests.ample import ample
from tests.cli.running import Command
from tests.remat_cli.steps import network
from tests.solvers.methods.chains.test_programs import all_kept, read

CHAINS = sorted((Path(__file__).parents[2] / "data" / "chains").glob("*.json"))


def limits() -> Limits:
    return Limits(ample())


def whole(times: list[float]) -> int:
    """How many of the problem's units are one of the chain's."""
    return min(10**6, 10 ** max(len(str(time).partition(".")[2].rstrip("0")) for time in times))


def sizes(told: dict[str, Any]) -> int:
    return whole([*told["a"], *told["abar"], *told["o_f"], *told["o_b"]])


@pytest.mark.parametrize("path", CHAINS, ids=lambda path: path.stem)
def test_every_op_once_costs_and_needs_what_rotor_says(path: Path) -> None:
    chain, told = read(path)
    problem = problemfile.read(path).problem
    outcome = baseline(problem)[1]
    unit = whole([*told["fw"], *told["bw"]])
    assert outcome.cost == pytest.approx(chain.once * unit, abs=len(problem.nodes))
    peak = simulate(chain, all_kept(chain.length)).peak * sizes(told)
    assert outcome.peak == pytest.approx(peak, rel=0.01)


@pytest.mark.parametrize("share", [0.6, 0.8])
@pytest.mark.parametrize("name", ["toy_table2_M90", "rand_L10_f0.5", "fig4_n10"])
def test_rotor_on_the_file_is_no_dearer_than_on_the_chain(name: str, share: float) -> None:
    path = next(path for path in CHAINS if path.stem == name)
    chain, told = read(path)
    problem = problemfile.read(path).problem
    budget = int(share * baseline(problem)[1].peak)
    sequence = rotor(chain, budget / sizes(told))
    found = schedule(problem, budget, METHODS["rotor"].load(), limits())
    if sequence is None:
        return
    unit = whole([*told["fw"], *told["bw"]])
    run = simulate(chain, sequence)
    assert found.result.status is not Status.UNKNOWN
    assert found.outcome is not None
    assert found.outcome.cost <= 1.001 * run.makespan * unit
    assert found.outcome.peak <= budget


def test_the_toy_of_the_paper(remat: Command) -> None:
    """47.42 ms within 90 MB, in units of 0.01 of either."""
    path = next(path for path in CHAINS if path.stem == "toy_table2_M90")
    ran = remat("solve", path, "--budget", 9000, "--method", "rotor", "--json", "-o", "toy.plan.json")
    assert ran.code == 0
    assert ran.object["cost"] == 4742
    assert remat("show", "toy.plan.json", "--json").object["cost"] == 4742


def test_a_model_as_a_chain_and_back(remat: Command, tmp_path: Path) -> None:
    """The chain of a network costs what the network does, and needs about as much."""
    subject = network(tmp_path, "vgg16", batch=2, image=32, hidden=32)
    ran = remat("problem", subject.path, "--chain", "-o", "vgg.chain.json", "--json")
    assert ran.code == 0
    written = problemfile.read(Path("vgg.chain.json")).problem
    before, after = baseline(subject.problem)[1], baseline(written)[1]
    assert after.cost == pytest.approx(before.cost, rel=0.001)
    assert after.peak == pytest.approx(before.peak, rel=0.25)
    assert remat("solve", "vgg.chain.json", "--budget", "99%", "--method", "rotor", "--json").code == 0


@pytest.mark.parametrize(
    "change, words",
    [
        ({"fw": []}, "no stages"),
        ({"bw": [1]}, "bw has 1 entries"),
        ({"resident": "much"}, "resident is 'much'"),
        ({"abar": [0, -1, 1]}, "no time or size"),
        ({"o_f": None}, "no list 'o_f'"),
        ({"format": "other"}, "not 'remat-chain/1'"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, object], words: str) -> None:
    chain = {"fw": [1, 2], "bw": [1, 2, 0], "a": [1, 1, 1], "abar": [0, 2, 2], "o_f": [0, 0], "o_b": [0, 0, 0]}
    with pytest.raises(BadInput, match=words):
        problemfile.loads(json.dumps({**chain, **change}))
