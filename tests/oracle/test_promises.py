"""Fresh random problems in every run, each held against the oracle and the replay; the seed is printed."""

from __future__ import annotations

import os
from random import Random, SystemRandom

import pytest

from tests.oracle import promises

SEED = int(os.environ.get("ORACLE_SEED", SystemRandom().randrange(1 << 30)))
SECONDS = 0.05  # a search that is cut short must be as right as one that is not


def _hold(count: int, seconds: float, capsys: pytest.CaptureFixture[str], large: bool) -> None:
    with capsys.disabled():
        print(f" [ORACLE_SEED={SEED}] ", end="", flush=True)
    for number in range(count):
        random = Random(f"{SEED} {number}")
        case = (promises.large_case if large else promises.small_case)(random, seconds)
        found = case.solved()
        wrong = list(promises.wrong_figures(case, found))
        if not large:
            wrong += promises.wrong_proofs(case, found)
            wrong += promises.wrong_contraction(case)
        if number % 10 == 0 and not large:
            wrong += promises.wrong_least_peak(case)
        assert not wrong, (SEED, number, wrong, case)


def test_small_problems_against_the_oracle(capsys: pytest.CaptureFixture[str]) -> None:
    _hold(1000, SECONDS, capsys, large=False)


def test_larger_problems_against_the_replay(capsys: pytest.CaptureFixture[str]) -> None:
    _hold(60, SECONDS, capsys, large=True)
