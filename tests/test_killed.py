"""A sample of `tests.killing`, with a fresh seed in every run."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.killing import Kills

SEED = int(os.environ["FRESH_SEED"])


@pytest.mark.slow
def test_nothing_torn_and_nothing_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f" [seed {SEED}] ", end="", flush=True)
    names = ("zoo", "grad")
    kills = Kills(tmp_path / "home")
    kills.home.mkdir()
    kills.begin(names)
    for number in range(4):
        ended, wrong = kills.kill(names[number % 2], Random(f"{SEED} {number}"), tmp_path / f"killed{number}")
        assert not wrong, (SEED, number, ended, wrong)
