"""The chain programs against published values, an exhaustive search, and the simulator of sequences."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from solvers.methods.chains.chain import Chain, ChainStep, IllegalSequence, StageOp, chain, simulate, written
from solvers.methods.chains.floating import floating
from solvers.methods.chains.rotor import revolve, rotor
from solvers.methods.chains.slots import in_slots
from tests.solvers.methods.chains.brute import Tiny, least_makespan, random_tiny

NAMES = {"Fck": StageOp.CHECK, "F0": StageOp.EMPTY, "Fall": StageOp.ALL, "B": StageOp.BACK}


def read(path: Path) -> tuple[Chain, dict[str, Any]]:
    told = json.loads(path.read_text())
    return chain(told["fw"], told["bw"], told["a"], told["abar"], told["o_f"], told["o_b"]), told


def told_sequence(told: dict[str, Any], key: str) -> list[ChainStep]:
    """The reference's own sequence; it counts stages from 0 and writes the loss as one step."""
    steps: list[ChainStep] = []
    for name, stage in told.get("answers", told)[key]["ops"]:
        loss = told["L"] + 1
        steps += (
            [ChainStep(StageOp.ALL, loss), ChainStep(StageOp.BACK, loss)]
            if name == "L"
            else [ChainStep(NAMES[name], stage + 1)]
        )
    return steps


def all_kept(length: int) -> list[ChainStep]:
    return [ChainStep(StageOp.ALL, k) for k in range(1, length + 1)] + [
        ChainStep(StageOp.BACK, k) for k in range(length, 0, -1)
    ]


def as_chain(tiny: Tiny) -> Chain:
    return chain(tiny.fw[:-1], tiny.bw, tiny.a[:-1], tiny.abar[:-1], tiny.of[:-1], tiny.ob)


def test_table_2_of_the_paper(data: Path) -> None:
    toy, told = read(data / "chains" / "toy_table2_M90.json")
    kept = simulate(toy, all_kept(toy.length))
    assert (kept.makespan, kept.peak) == (pytest.approx(37.38), 10699)
    for program in (rotor, floating):
        found = program(toy, told["mem_limit"])
        assert found is not None
        assert simulate(toy, found).makespan == pytest.approx(47.42)
    exact = rotor(toy, told["mem_limit"], slots=9000)
    assert exact == tuple(told_sequence(told, "persistent"))
    assert simulate(toy, exact).peak == 8675
    assert written(exact).startswith("F_ck^1 F_0^2 F_0^3 F_all^4 F_all^5 F_all^6 F_all^7 B^7 B^6")


@pytest.mark.parametrize("n", [4, 5, 7, 10, 16])
def test_figure_4_of_the_paper(n: int) -> None:
    family = chain(
        [n - 2, 2] + [0] * n,
        [0] * (n + 3),
        [0, 1] + [3] * n + [4],
        [0, 1] + [3] * n + [4],
        [0] * (n + 2),
        [0] * (n + 3),
    )
    kept, floated = rotor(family, 15), floating(family, 15)
    assert kept is not None
    assert floated is not None
    assert simulate(family, kept).makespan == 3 * n - 2
    assert simulate(family, floated).makespan == 2 * n + 2
    assert simulate(family, floated).peak <= 15


@pytest.mark.parametrize("name", ["fig4_n4", "fig4_n10"])
def test_figure_4_as_the_reference_ran_it(data: Path, name: str) -> None:
    family, told = read(data / "chains" / f"{name}.json")
    for program, key in ((rotor, "persistent"), (floating, "floating")):
        found = program(family, told["mem_limit"])
        assert found is not None
        run = simulate(family, found)
        assert (run.makespan, run.peak) == (told["answers"][key]["makespan"], told["answers"][key]["peak"])


@pytest.mark.parametrize(
    ("name", "key", "program"),
    [
        ("rand_L10_f0.5", "persistent", rotor),
        ("rand_L10_f0.5", "floating", floating),
        ("rand_L20_f0.5", "floating", floating),
        ("rand_L50_f0.5", "persistent", rotor),
        ("rand_L50_f0.5", "persistent", floating),
    ],
)
def test_the_reference_on_random_chains(data: Path, name: str, key: str, program: Any) -> None:
    random_chain, told = read(data / "chains" / f"{name}.json")
    small, _ = in_slots(random_chain, told["mem_limit"], told["slots"])
    assert [*small.a[:-1]] == told["slot_a"]
    assert [*small.abar[1:-1]] == told["slot_abar"][1:]
    found = program(random_chain, told["mem_limit"])
    run = simulate(random_chain, found)
    assert run.makespan == pytest.approx(told[key]["makespan"])
    assert run.peak <= told["mem_limit"]
    theirs = simulate(small, told_sequence(told, key))
    assert theirs.peak == told[key]["peak_slots"]
    assert theirs.makespan == pytest.approx(told[key]["makespan"])


@pytest.mark.parametrize("seed", range(30))
def test_persistent_is_the_best_of_all_persistent_sequences(seed: int) -> None:
    random = Random(seed)
    tiny = random_tiny(random, random.randint(2, 6))
    whole = simulate(as_chain(tiny), all_kept(len(tiny.fw))).peak
    for memory in range(int(whole) // 4, int(whole) + 1, 3):
        best = least_makespan(tiny, memory, persistent=True)
        found = rotor(as_chain(tiny), memory)
        assert (None if found is None else simulate(as_chain(tiny), found).makespan) == best, memory
        assert found is None or simulate(as_chain(tiny), found).peak <= memory


@pytest.mark.parametrize("seed", range(10))
def test_floating_is_the_best_of_all_floating_sequences(seed: int) -> None:
    random = Random(seed)
    tiny = random_tiny(random, random.randint(3, 5))
    whole = simulate(as_chain(tiny), all_kept(len(tiny.fw))).peak
    for memory in range(int(whole) // 3, int(whole) + 1, 3):
        best = least_makespan(tiny, memory, persistent=False)
        found = floating(as_chain(tiny), memory)
        assert (None if found is None else simulate(as_chain(tiny), found).makespan) == best, memory
        assert found is None or simulate(as_chain(tiny), found).peak <= memory


def test_the_search_knows_that_floating_beats_persistent() -> None:
    tiny = Tiny((2, 2, 0, 0, 0, 0, 0), (0,) * 7, (0, 1, 3, 3, 3, 3, 4, 0), (0, 1, 3, 3, 3, 3, 4, 0), (0,) * 7, (0,) * 7)
    assert least_makespan(tiny, 15, persistent=False) == 10
    longer = Tiny((4, 2, *(0,) * 7), (0,) * 9, (0, 1, *(3,) * 6, 4, 0), (0, 1, *(3,) * 6, 4, 0), (0,) * 9, (0,) * 9)
    assert least_makespan(longer, 15, persistent=True) == 16
    assert least_makespan(longer, 15, persistent=False) == 14


@pytest.mark.parametrize("seed", range(10))
def test_revolve_runs_each_backward_right_after_its_forward(seed: int) -> None:
    random = Random(seed)
    tiny = as_chain(random_tiny(random, 7))
    memory = simulate(tiny, all_kept(7)).peak
    kept, found = rotor(tiny, memory), revolve(tiny, memory)
    assert found is not None
    backs = [place for place, step in enumerate(found) if step.op is StageOp.BACK]
    assert all(found[place - 1] == ChainStep(StageOp.ALL, found[place].stage) for place in backs)
    assert kept is not None
    assert simulate(tiny, found).makespan >= simulate(tiny, kept).makespan


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ([ChainStep(StageOp.CHECK, 2)], "input is not held"),
        ([ChainStep(StageOp.ALL, 1), ChainStep(StageOp.BACK, 1)], "gradient or activations"),
        ([ChainStep(StageOp.ALL, 1), ChainStep(StageOp.EMPTY, 2)], "not its own"),
        ([ChainStep(StageOp.ALL, 1), ChainStep(StageOp.ALL, 1)], "already held"),
        ([ChainStep(StageOp.ALL, 1), ChainStep(StageOp.ALL, 2), ChainStep(StageOp.BACK, 2)], "ends before"),
    ],
)
def test_the_simulator_refuses_what_cannot_run(broken: list[ChainStep], says: str) -> None:
    two = chain([1], [1, 1], [1, 1], [1, 1], [0], [0, 0])
    with pytest.raises(IllegalSequence, match=says):
        simulate(two, broken)
