"""Plans in files: a better one for the same question is never lost, and what is written over is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

import remat_cli as remat
from remat_cli.formats import planfile
from remat_cli.formats.planfile import PlanFile
from remat_cli.notes.kinds import PlanNote
from remat_cli.plans import keeping
from remat_cli.plans.planned import Planned

WORK = 20_000
DATA = Path(__file__).parents[2] / "data"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[Planned, PlanFile, PlanFile]:
    """A plan, and two for the same question that cost more: whose orders compute more than they need."""
    folder = tmp_path_factory.mktemp("plans")
    shutil.copy(DATA / "torch_cnn.onnx", folder / "m.onnx")

    def made(budget: str, **more: object) -> Planned:
        return remat.solve(folder / "m.onnx", budget=budget, work_limit=WORK, cache=False, **more)  # type: ignore[arg-type]

    best = made("90%")
    lesser = [made(budget).recorded for budget in ("80%", "70%")]
    one, other = (replace(plan, budget=best.budget, bound=best.bound) for plan in lesser)
    assert best.cost < one.cost < other.cost
    return best, one, other


def kinds(kept: keeping.Kept) -> list[str]:
    return [note.kind for note in kept.notes]


def test_a_better_plan_stays(plans: tuple[Planned, PlanFile, PlanFile], tmp_path: Path) -> None:
    best, worse, worst = plans
    path = tmp_path / "m.plan.json"
    assert keeping.put(worse, path, best.subject).notes == ()
    kept = keeping.put(worst, path, best.subject)
    assert (kinds(kept), kept.plan.cost, planfile.read(path).cost) == ([PlanNote.STAYS], worse.cost, worse.cost)
    kept = keeping.put(best.recorded, path, best.subject)
    assert (kinds(kept), planfile.read(path).cost) == ([PlanNote.WORSE_STOOD], best.cost)
    before = path.read_bytes()
    assert keeping.put(best.recorded, path, best.subject).notes == ()
    assert kinds(keeping.put(replace(best.recorded, seed=7), path, best.subject)) == [PlanNote.STAYS_AS_GOOD]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "other",
    [
        lambda plan: replace(plan, budget=plan.budget + 64),
        lambda plan: replace(plan, method="milp"),
        lambda plan: replace(plan, session="default"),
        lambda plan: replace(plan, asked={"minimize": "peak", "budget": "none"}),
        lambda plan: replace(plan, model=replace(plan.model, sha256="0" * 64)),
    ],
)
def test_a_plan_for_another_question_is_said_to_be_written_over(
    other: Callable[[PlanFile], PlanFile], plans: tuple[Planned, PlanFile, PlanFile], tmp_path: Path
) -> None:
    best, worse, _ = plans
    path = tmp_path / "m.plan.json"
    keeping.put(other(best.recorded), path, best.subject)
    assert kinds(keeping.put(worse, path, best.subject)) == [PlanNote.ANOTHER_STOOD]
    assert planfile.read(path).cost == worse.cost


@pytest.mark.parametrize("damage", ["cost", "program", "text"])
def test_what_is_no_sound_plan_does_not_stay(
    damage: str, plans: tuple[Planned, PlanFile, PlanFile], tmp_path: Path
) -> None:
    best, worse, _ = plans
    path = tmp_path / "m.plan.json"
    keeping.put(best.recorded, path, best.subject)
    said = json.loads(path.read_text())
    said["cost"] -= damage == "cost"
    said["program"] = said["program"][: 40 if damage == "program" else None]
    path.write_text("not a plan" if damage == "text" else json.dumps(said))
    assert kinds(keeping.put(worse, path, best.subject)) == [PlanNote.NO_PLAN_STOOD]
    assert planfile.read(path).cost == worse.cost


@pytest.mark.slow
def test_of_two_at_once_the_better_is_left(plans: tuple[Planned, PlanFile, PlanFile], tmp_path: Path) -> None:
    best, worse, worst = plans
    path = tmp_path / "m.plan.json"
    fork = get_context("fork")
    for _ in range(5):
        path.unlink(missing_ok=True)
        together = fork.Barrier(3)

        def write(plan: PlanFile, together: object = together) -> None:
            together.wait()  # type: ignore[attr-defined]
            keeping.put(plan, path, best.subject)

        writers = [fork.Process(target=write, args=(plan,)) for plan in (worst, best.recorded, worse)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        assert planfile.read(path).cost == best.cost


def test_save_says_what_it_does(plans: tuple[Planned, PlanFile, PlanFile], tmp_path: Path) -> None:
    best, worse, _ = plans
    path = tmp_path / "m.plan.json"
    best.save(path)
    with pytest.warns(remat.RematWarning, match="holds a better plan for the same question"):
        replace(best, recorded=worse).save(path)
    assert remat.load_plan(path).cost == best.cost
    with pytest.warns(remat.RematWarning, match="another question"):
        replace(best, recorded=replace(worse, budget=worse.budget + 64)).save(path)
    assert remat.load_plan(path).cost == worse.cost
