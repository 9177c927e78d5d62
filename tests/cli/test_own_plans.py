"""A baseline's plan is its own: no other method's schedule ever takes its place, whatever the budget and session."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.model.proved import Promise
from remat_cli.model.quantities import Budget
from remat_cli.model.sessions import REMAT
from remat_cli.planning.kinds import TARGETS
from remat_cli.planning.search import repairs
from remat_cli.planning.search.answer import Answer
from remat_cli.planning.subjects.subject import Subject
from remat_cli.planning.targets.planned import PlannedTarget
from solvers.placement.memory import MemoryModel
from solvers.problem import Limits
from solvers.registry import METHODS
from solvers.schedule import schedule
from tests.ample import ample
from tests.cli.running import Command
from tests.remat_cli.planning.requests import nothing
from tests.remat_cli.steps import network
from tests.sampling import few

BASELINES = ("griewank", "periodic", "chen-greedy", "full-checkpoint", "rotor")
WORTH_A_WALK = {name for name, method in METHODS.items() if method.may_reorder}


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return network(tmp_path_factory.mktemp("own"), "vgg16", batch=4, image=64, hidden=32)


@pytest.mark.parametrize("method", few(BASELINES, 1))
def test_alone_it_costs_what_the_method_itself_finds(
    method: str, remat: Command, subject: Subject, tmp_path: Path
) -> None:
    asked = ("--method", method, "--budget", "100%", "--json", "-o", tmp_path / "plan")
    ran = remat("solve", subject.path, *asked)
    assert ran.code == 0
    found = ran.object
    assert found["made_by"] == method
    own = schedule(subject.problem, found["budget"], METHODS[method].load(), Limits(ample()))
    assert own.outcome is not None
    assert found["cost"] >= own.outcome.cost * 0.999
    assert not any("walk" in note for note in found["notes"])


@dataclass
class Crowded(PlannedTarget):
    """An allocator that has room for nothing but what its own walk makes, which takes longer than all else."""

    longest: int = 0  # of the plans refused
    walked: bool = False

    def counted(self, promise: Promise) -> int:
        if self.walked and promise.time > self.longest:
            return 0
        self.longest = max(self.longest, promise.time)
        return 1 << 60

    def walk(self, memory: MemoryModel, *_: object) -> tuple[int, ...]:
        self.walked = True
        return (0, *range(len(memory.problem.nodes)))


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Crowded:
    found = Crowded()
    monkeypatch.setitem(TARGETS, REMAT, found)
    monkeypatch.setattr(repairs, "walked", found.walk)
    for way in ("fitted", "moved_about"):
        monkeypatch.setattr(repairs, way, lambda *_: nothing())
    return found


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return network(tmp_path_factory.mktemp("toy"), "rotor-toy")


def without_room(subject: Subject, method: str) -> Answer:
    """What comes of a method that has all the memory it could want, where no plan of its own can be placed in it."""
    question = Question(budget=Budget(Fraction(20 * subject.before().peak)), method=method)
    return ask(subject, question, Limits(ample()))


@pytest.mark.parametrize("method", sorted(set(METHODS) - WORTH_A_WALK))
def test_what_cannot_be_placed_is_no_plan(method: str, crowded: Crowded, toy: Subject) -> None:
    found = without_room(toy, method)
    assert crowded.longest, "the method had a plan of its own"
    assert not found.found
    assert found.made_by is None
    assert not crowded.walked


@pytest.mark.parametrize("method", sorted(WORTH_A_WALK))
def test_a_walk_in_place_of_a_plan_has_its_name(method: str, crowded: Crowded, toy: Subject) -> None:
    found = without_room(toy, method)
    assert crowded.walked
    assert found.found
    assert found.made_by == "evict"
