"""The clock that everything shares, with time as the test says it is."""

from __future__ import annotations

import pytest

from solvers import clock
from solvers.clock import Clock


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: time[0])
    return time


def begun(seconds: float, at: float = 100.0) -> Clock:
    return Clock(seconds, begun=at)


def test_it_runs_out(now: list[float]) -> None:
    whole = begun(10)
    now[0] += 4
    assert (whole.elapsed(), whole.left(), whole.over()) == (4, 6, False)
    now[0] += 7
    assert (whole.left(), whole.over()) == (0, True)


def test_no_clock_made_from_another_ends_later(now: list[float]) -> None:
    whole = begun(10)
    now[0] += 4
    assert whole.share(0.5).seconds == 3
    assert whole.within(100).seconds == 6
    now[0] += 10
    assert whole.within(5).over()


def test_all_hear_the_same_stop() -> None:
    heard = [False, False]
    whole = Clock(10, lambda: heard[0])
    parts = [whole.share(0.5), whole.within(3), whole.unless(lambda: heard[1])]
    assert not any(part.over() for part in parts)
    heard[1] = True
    assert [part.over() for part in parts] == [False, False, True]
    heard[0] = True
    assert all(part.over() for part in [whole, *parts])
