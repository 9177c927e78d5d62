"""Fixtures that every package's tests may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Command

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    """Real cases with known answers."""
    return DATA


@pytest.fixture
def remat(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command, run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Command(capsys, monkeypatch)
