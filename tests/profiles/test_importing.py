"""Ctrl-C waits for an import that must be whole, unless a program has a handler of its own."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from profiles.importing import whole


@pytest.fixture(autouse=True)
def as_in_a_program() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressed_meanwhile(bring: Callable[[], object]) -> None:
    with whole():
        signal.raise_signal(signal.SIGINT)
        bring()


def fail() -> None:
    raise ImportError("there is no such module")


def test_it_comes_at_the_end() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        pressed_meanwhile(lambda: done.append("the import"))
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_comes_though_the_import_fails() -> None:
    with pytest.raises(KeyboardInterrupt) as stop:
        pressed_meanwhile(fail)
    assert isinstance(stop.value.__context__, ImportError)


def test_a_program_s_own_handler_hears_at_once() -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    pressed_meanwhile(lambda: heard.append(0))
    assert heard == [signal.SIGINT, 0]
    with pytest.raises(ImportError):
        pressed_meanwhile(fail)


def test_other_threads_change_nothing() -> None:
    handlers: list[object] = []

    def bring() -> None:
        with whole():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = Thread(target=bring)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]
