"""Fresh random problems in every run, each held against the oracle and the replay."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.oracle import promises

SEED = int(os.environ["FRESH_SEED"])
SECONDS = 0.05  # a search that is cut short must be as right as one that is not


def _hold(count: int, seconds: float, large: bool) -> None:
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


@pytest.mark.slow
def test_small_problems_against_the_oracle() -> None:
    _hold(400, SECONDS, large=False)


@pytest.mark.slow
def test_larger_problems_against_the_replay() -> None:
    _hold(60, SECONDS, large=True)
