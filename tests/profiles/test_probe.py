"""What was measured while this machine was slower is measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import device, survey
from profiles.cache import Cache
from profiles.measure import Timing
from profiles.survey import Ops
from tests.profiles.making import floats, signature

RELU, TANH = (signature(kind, [floats(64)], [floats(64)]) for kind in ("Relu", "Tanh"))
OPS = Ops({"relu": RELU, "tanh": TANH})


@pytest.mark.parametrize(("before", "again", "said"), [(10**12, {RELU.key}, "done again"), (1, set(), "slower now")])
def test_what_another_day_measured(before: int, again: set[str], said: str, tmp_path: Path) -> None:
    here = device.find("cpu", 1)
    cache = Cache(here, tmp_path)
    cache.keep_timing(TANH, Timing(1000, 0.01, 9), "")  # of before there was a probe: it stands
    cache.probe = before
    cache.keep_timing(RELU, Timing(10**9, 0.01, 9), "")
    cache.keep_whole(OPS.key, {"ns": 5}, "")
    later = Cache(here, tmp_path)
    (note,) = survey.held_against_now(OPS, here, later)
    assert said in note
    assert set(survey.missing(OPS, later)) == again
    assert (OPS.key in later.wholes) == (not again)
