"""A process of ours: what it is told and answers, how it ends, and what is said of that."""

from __future__ import annotations

import os
import signal

import pytest

from remat_cli.children import Child

ECHOING = "tests.remat_cli.echoing"


def test_it_answers_what_it_is_told_and_nothing_else() -> None:
    with Child(ECHOING) as child:
        assert child.ask({"a": [1, "ä"]}) == {"a": [1, "ä"]}
        long = "x" * 1_000_000  # more than a pipe holds
        assert child.ask(long) == long


def test_all_answers_to_a_line_are_heard() -> None:
    with Child(ECHOING) as child:
        child.tell("twice")
        found: list[object] = []
        while len(found) < 2:
            found += child.heard() or ()
        assert found == [1, "twice"]


def test_it_is_said_why_it_is_gone() -> None:
    with Child(ECHOING) as child:
        assert child.ask("die") is None
        assert child.why() == f"its process was killed by signal {signal.SIGKILL:d}, perhaps for want of memory"
    with Child(ECHOING) as child:
        assert child.ask("raise") is None
        assert child.why() == "ValueError: this is wrong"
        assert child.ask("again") is None


def test_who_waits_can_give_up_and_no_process_stays() -> None:
    def give_up() -> None:
        raise TimeoutError

    with Child("tests.remat_cli.none_such") as child, Child(ECHOING) as other:
        os.kill(other.process.pid, signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            other.ask("anything", give_up)
        assert child.ask("anything") is None
        assert "none_such" in child.why()
    assert other.process.poll() is not None
