"""What was measured while this machine was slower, or busy, is measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import device, survey
from profiles.bench import OpBench
from profiles.cache import Cache
from profiles.measure import Timing
from profiles.probe import Probe
from profiles.survey import Ops
from tests.profiles.making import floats, signature

RELU, TANH = (signature(kind, [floats(64)], [floats(64)]) for kind in ("Relu", "Tanh"))
OPS = Ops({"relu": RELU, "tanh": TANH})


@pytest.mark.parametrize(
    ("before", "waited", "again", "said"),
    [(10**12, 0.0, {RELU.key}, ["done again"]), (1, 0.0, set(), ["slower now"]), (10**12, 0.5, set(), [])],
)
def test_what_another_day_measured(
    before: int, waited: float, again: set[str], said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others have the processors nothing is measured again: no figure would be better for it."""
    monkeypatch.setattr(OpBench, "probe", lambda _: Probe(1000, waited))
    here = device.find("cpu", 1)
    cache = Cache(here, tmp_path)
    cache.keep_timing(TANH, Timing(1000, 0.01, 9), "")  # of before there was a probe: it stands
    cache.probe = Probe(before)
    cache.keep_timing(RELU, Timing(10**9, 0.01, 9), "")
    cache.keep_whole(OPS.key, {"ns": 5}, "")
    later = Cache(here, tmp_path)
    notes = survey.held_against_now(OPS, here, later)
    assert [words in note for words, note in zip(said, notes, strict=True)] == [True] * len(said)
    assert set(survey.missing(OPS, later)) == again
    assert (OPS.key in later.wholes) == (not again)


@pytest.mark.parametrize(("now", "again"), [(0.0, {RELU.key}), (0.5, set())])
def test_what_was_measured_while_others_had_the_processors(
    now: float, again: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short runs slip between those of others, so that the probe looks as ever: what was waited tells."""
    monkeypatch.setattr(OpBench, "probe", lambda _: Probe(1000, now))
    here = device.find("cpu", 1)
    cache = Cache(here, tmp_path)
    cache.probe = Probe(1000, 0.6)
    cache.keep_timing(TANH, Timing(1000, 0.01, 9), "")
    cache.keep_timing(RELU, Timing(5000, 0.01, 9, waited=0.6), "")
    cache.keep_whole(OPS.key, {"ns": 5, "waited": 0.6}, "")
    later = Cache(here, tmp_path)
    said = survey.held_against_now(OPS, here, later)
    assert [("60%" in note) for note in said] == [True] * len(again)
    assert set(survey.missing(OPS, later)) == again
    assert (OPS.key in later.wholes) == (not again)
    later.keep_timing(RELU, Timing(7000, 0.01, 9), "")  # nothing makes an op look faster than it is
    assert Cache(here, tmp_path).timings[RELU.key].ns == (5000 if again else 7000)
