"""Calls side by side: answers in order, whatever ends first; a solve finds the same on one processor and on several."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from random import Random
from threading import Event

import pytest

from solvers import side_by_side as module
from solvers.clock import Clock, Work
from solvers.methods.auto.auto import solve
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits, Result
from solvers.side_by_side import SearchThreads
from tests.solvers.training_chain import training_chain

PROCESSORS = (1, 2, 5)


@pytest.fixture(params=PROCESSORS)
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "processors", lambda: request.param)
    return int(request.param)


def late(answer: int) -> int:
    time.sleep(0.01 * (5 - answer))
    return answer


def test_answers_come_in_the_order_of_the_calls(many: int) -> None:
    with SearchThreads() as workers:
        assert workers.side_by_side([partial(late, answer) for answer in range(5)]) == list(range(5))
        assert workers.side_by_side([]) == []


def test_what_is_begun_takes_one_of_them(many: int) -> None:
    answered = Event()
    with SearchThreads() as workers:
        begun = workers.begin(answered.wait)
        if many > 1:
            assert workers.side_by_side([partial(late, answer) for answer in range(5)]) == list(range(5))
        assert not begun.done()
        answered.set()
        assert begun.result()


def test_what_a_call_raises_is_raised(many: int) -> None:
    def fail() -> int:
        raise ArithmeticError

    calls: list[Callable[[], int]] = [fail, partial(late, 4)]
    with SearchThreads() as workers, pytest.raises(ArithmeticError):
        workers.side_by_side(calls)


def test_the_number_of_processors_does_not_decide_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = training_chain(Random(43))
    budget = peak_bound(problem).peak * 5 // 4

    def found(processors: int) -> Result:
        monkeypatch.setattr(module, "processors", lambda: processors)
        return solve(problem, budget, Limits(Clock(1e9, work=Work(), most=200_000)))

    assert found(1) == found(2) == found(5)
