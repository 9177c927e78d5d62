"""The end of a command's time: who speaks, and how often."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from remat_cli.actions.interrupts import Deadline
from remat_cli.errors import NoPlan
from solvers.clock import Clock


def test_what_nobody_ends_is_ended_with_what_is_known() -> None:
    left: list[int] = []
    gone = threading.Event()

    def leave(code: int) -> None:
        left.append(code)
        gone.set()

    Deadline(Clock(0.0), lambda _: NoPlan("none"), leave)
    assert gone.wait(30)
    assert left == [NoPlan.code]


def test_a_command_that_ends_by_itself_is_let_to() -> None:
    said: list[str] = []
    deadline = Deadline(Clock(600.0), lambda _: said.append("late"), said.append)
    deadline.met()
    deadline.clock = Clock(0.0)
    threading.Event().wait(1.0)
    assert said == []


def test_a_command_that_fails_is_not_ended_later() -> None:
    said: list[object] = []
    with suppress(ValueError), Deadline(Clock(600.0), lambda _: said.append("late"), said.append) as deadline:
        raise ValueError
    deadline.clock = Clock(0.0)
    threading.Event().wait(1.0)
    assert said == []


@pytest.mark.slow
def test_before_a_search_begins_time_that_is_up_ends_nothing() -> None:
    gone = threading.Event()

    def leave(_: int) -> None:
        gone.set()

    deadline = Deadline(Clock(0.0), lambda _: NoPlan("none"), leave, searching=False)
    assert not gone.wait(1.5)
    deadline.search_begins()
    assert gone.wait(30)
