"""Limits of time as whoever starts the command sees them: from the process's beginning to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from profiles.device import find
from profiles.server import PRELOADED
from remat_cli.actions import profiling
from remat_cli.actions.interrupts import Deadline
from remat_cli.actions.profiling import ProfileQuestion
from remat_cli.checking.processes import TIME_UP, Bench
from remat_cli.commands import options
from remat_cli.model.sessions import STRICT
from remat_cli.planning.loading import load_subject
from remat_cli.planning.time_plan import ENDING_SHARE
from solvers import clock
from solvers.clock import Clock
from tests.remat_cli.random_models import random_model


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes by as the test says."""
    time = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: time[0])
    return time


@click.command()
@click.option("--time-limit", type=options.TIME, default="5s")
@click.pass_context
def asking(context: click.Context, **given: Any) -> float:
    return options.clock_of(given).left()


def test_a_commands_time_counts_from_when_its_process_began(now: list[float]) -> None:
    assert asking.main([], standalone_mode=False, obj=97.0) == 2.0
    assert asking.main([], standalone_mode=False) == 5.0


def test_the_end_of_the_work_leaves_a_share_of_what_the_start_took(now: list[float]) -> None:
    began = Clock(10.0)
    now[0] += 4.0
    work = began.before_ending(0.25)
    assert work.left() == 5.0
    now[0] += 5.0
    assert work.over()
    assert began.left() == 1.0


def test_last_words_come_earlier_the_longer_the_start_took(now: list[float]) -> None:
    deadline = Deadline(Clock(10.0), lambda _: None, lambda _: None, searching=False)
    with deadline:
        now[0] += 4.0
        deadline.search_begins()
        now[0] += 6.0 - 4.0 * ENDING_SHARE - 0.01
        assert not deadline._is_up()
        now[0] += 0.01
        assert deadline._is_up()


def test_what_is_to_be_done_at_the_end_is_done_before_the_process_is_left() -> None:
    script = (
        "import atexit, sys; from remat_cli.start import main; atexit.register(print, 'done');"
        "sys.argv = ['remat', *sys.argv[1:]]; main()"
    )
    for words, code, said in ((["--version"], 0, "remat "), (["solve", "--budget", "x"], 2, "budget")):
        ran = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout.splitlines()[-1]) == (code, "done")
        assert said in ran.stdout + ran.stderr


def test_the_benches_server_begins_without_what_it_imports() -> None:
    """Else the command would wait for it."""
    asked = f"import sys, profiles.server; print([name for name in {[*PRELOADED, 'numpy']} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_profile_without_time_says_that_it_measured_nothing() -> None:
    found = profiling.profile(random_model(1), ProfileQuestion(seconds=0.0, cached=False))
    assert found.measured == 0
    assert found.costs.ops


def test_a_bench_without_time_writes_nothing(tmp_path: Path) -> None:
    with Bench({"x": find("cpu", 1)}, "cpu", 1.0, clock=Clock(0.0)) as bench:  # what is fed is not looked at
        assert bench.run(tmp_path / "none.onnx", STRICT) is TIME_UP
        assert not list(bench.folder.iterdir())


def test_the_model_as_it_is_is_reckoned_once(tmp_path: Path) -> None:
    (path := tmp_path / "m.onnx").write_bytes(random_model(1).SerializeToString())
    subject = load_subject(path, None, {})
    assert subject.as_it_is() is subject.as_it_is()
