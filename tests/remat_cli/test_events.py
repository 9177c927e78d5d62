"""EventQueue are all read, in order, beside the work; what goes wrong where they are read is raised at the end."""

from __future__ import annotations

from threading import Event, get_ident

import pytest

from remat_cli.events import EventQueue


def test_all_are_read_in_order_and_none_is_waited_for() -> None:
    events, read, goes_on = EventQueue[int](), list[int](), Event()
    threads = set[int]()

    def hear(event: int) -> None:
        goes_on.wait()
        threads.add(get_ident())
        read.append(event)

    with events.read_by(hear):
        for event in range(100):
            events.say(event)
        assert read == []  # the reader still waits for the work to get here
        goes_on.set()
    assert read == list(range(100))
    assert threads.isdisjoint({get_ident()})


def test_who_reads_may_fail_and_hears_no_more() -> None:
    events, read = EventQueue[int](), list[int]()

    def hear(event: int) -> None:
        read.append(event)
        raise LookupError("of the program")

    def work() -> None:
        with events.read_by(hear):
            events.say(1)
            events.say(2)
            raise ValueError("of the work, which ended for want of a reader")

    with pytest.raises(LookupError, match="of the program"):
        work()
    assert read == [1]
    assert events.broken()
