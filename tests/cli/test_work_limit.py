"""A limit in work: the same plan however slow the machine, and what it says of why it stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import remat_cli
from solvers.clock import Clock, Work, limited
from solvers.problem import Progress
from solvers.scip import ProgramAnswer, Solving
from tests.cli.running import Command


@contextmanager
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Others are at work on it, and SCIP takes its time."""
    ended, wait = threading.Event(), Solving.wait

    def burn() -> None:
        while not ended.is_set():
            sum(range(1000))

    def slowly(solving: Solving) -> ProgramAnswer:
        time.sleep(0.05)
        return wait(solving)

    monkeypatch.setattr(Solving, "wait", slowly)
    threading.Thread(target=burn, daemon=True).start()
    yield
    ended.set()
    monkeypatch.undo()


@pytest.mark.parametrize("method", ["auto", "milp"])
def test_the_same_plan_on_a_slow_machine(data: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hear(_: Progress) -> None:
        time.sleep(0.01)

    model = data / "torch_cnn.onnx"
    asked = {"budget": "70%", "method": method, "work_limit": 30_000, "cache": False}
    plain = remat_cli.solve(model, **asked)
    with slow_machine(monkeypatch):
        slow = remat_cli.solve(model, **asked, report=hear)
    assert slow.recorded == plain.recorded


def test_why_it_stopped(remat: Command, data: Path) -> None:
    model = data / "torch_cnn.onnx"
    asked = ("solve", model, "--budget", "70%", "--json", "-o", "x.plan.json")
    few, more = (remat(*asked, "--work-limit", limit).object for limit in ("2k", "300k"))
    assert (few["stopped"], more["stopped"]) == ("work", "work")
    assert more["cost"] < few["cost"]
    assert remat(*asked, "--work-limit", "none").code == 2


def test_clocks_that_share_work() -> None:
    clock = Clock(60.0, work=Work(), most=100)
    part = clock.share(1 / 2)
    clock.spend(moves=49)
    assert (part.over(), clock.over()) == (False, False)
    part.spend(moves=1)
    assert (part.over(), clock.over(), clock.timed().over()) == (True, False, False)
    clock.spend(nodes=1)
    assert clock.worn()
    assert not clock.again().over()
    assert limited(5.0).most is None


@pytest.mark.slow
def test_two_sweeps_of_the_same_work_find_the_same(remat: Command, data: Path) -> None:
    """Two searches run at a time: neither counts the other's work."""
    asked = ("sweep", data / "torch_cnn.onnx", "--budgets", "70%,80%", "--work-limit", "50k", "--json", "--force")
    first, second = (remat(*asked).object["points"] for _ in range(2))
    for point in (*first, *second):
        assert point["cost"]
        assert point.pop("seconds") > 0
    assert first == second
    more = remat(*asked[:5], "2M", *asked[6:]).object["points"]
    assert [point["cost"] for point in more] < [point["cost"] for point in first]


def test_a_clock_apart_counts_for_itself() -> None:
    clock = Clock(60.0, work=Work(), most=100)
    apart = clock.apart(1 / 4)
    clock.spend(moves=99)
    assert (apart.most, apart.over(), apart.left() > 0) == (25, False, True)
    apart.spend(moves=25)
    assert (apart.over(), clock.over()) == (True, False)
    assert Clock(60.0).apart(1 / 4).most is None
