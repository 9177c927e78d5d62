"""The stopwatch: what others take of the processors is told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import stopwatch


@pytest.mark.parametrize(("alone", "took"), [(True, 30), (False, 100)])
def test_waiting_for_a_processor_is_no_work(alone: bool, took: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wall, used = iter((1000, 1100)), iter((500, 530))
    monkeypatch.setattr(stopwatch.time, "perf_counter_ns", lambda: next(wall))
    monkeypatch.setattr(stopwatch.time, "thread_time_ns", lambda: next(used))
    assert stopwatch.lap(lambda: None, alone) == took


def test_what_threads_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopwatch, "TASKS", tmp_path)
    assert stopwatch.Waiting().share() == 0  # a system that does not tell
    _thread(tmp_path / "1", 1000, 5000)
    waiting = stopwatch.Waiting()
    assert waiting.share() == 0
    _thread(tmp_path / "1", 1300, 5000)
    _thread(tmp_path / "2", 300, 200)
    assert waiting.share() == 0.25
    (tmp_path / "2" / "schedstat").write_text("")  # ended while it was read
    assert waiting.share() == 0


def _thread(folder: Path, ran: int, waited: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "schedstat").write_text(f"{ran} {waited} 7\n")
