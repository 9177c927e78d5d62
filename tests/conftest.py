"""Fixtures that every package's tests may use."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.running import Command

# The same examples on every run, however busy the machine is.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

os.environ["REMAT_RESULTS"] = "off"  # a test finds what it finds, whatever another found before

DATA = Path(__file__).parent / "data"


def pytest_configure() -> None:
    """One seed for all that a campaign draws anew (`make campaign`), the same in every process of the run."""
    os.environ.setdefault("FRESH_SEED", "1")
    # A shell that starts tests in the background has them ignore Ctrl-C, which commands that they start would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if os.environ["FRESH_SEED"] != "1":
        terminalreporter.write_line(f"what was drawn anew: FRESH_SEED={os.environ['FRESH_SEED']}")


@pytest.fixture
def data() -> Path:
    """Real cases with known answers."""
    return DATA


@pytest.fixture
def remat(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command, run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Command(capsys, monkeypatch)


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is profiled is measured once, and its graph for a moment, so that a long limit is soon met."""
    monkeypatch.setattr("profiles.survey.ROUNDS", 1)
    monkeypatch.setattr("remat_cli.actions.whole_graph.WHOLE_SECONDS", 0.3)
