"""The scheduler: work is shared out as it says, a long step waits, and what gains gets the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import sleep

import numpy as np
import pytest

from solvers.clock import limited
from solvers.methods.auto.annealing import Annealing
from solvers.methods.auto.auto import Auto
from solvers.methods.auto.operator import Offer, Operator, Step
from solvers.methods.auto.pool import Contender
from solvers.methods.auto.question import SearchQuestion
from solvers.methods.auto.scheduler import Scheduler
from solvers.orders.bounds import peak_bound
from solvers.problem import Limits
from tests.solvers.training_chain import LAYERS, training_chain


class Working(Operator):
    """Takes so much work a step, and may raise the bound by it."""

    def __init__(self, asked: SearchQuestion, name: str, share: float, work: int, gain: float = 0.0) -> None:
        super().__init__(asked, work)
        self.name, self.share, self.gain = name, share, gain
        self.steps = 0
        self.able = True

    def ready(self) -> bool:
        return self.able

    def begin(self) -> Step:
        def step(limits: Limits) -> list[Offer]:
            limits.clock.spend(moves=self.work)
            return []

        return step

    def end(self, entries: Sequence[Contender | None]) -> None:
        self.steps += 1
        self.asked.raise_floor(self.asked.floor + self.gain, self.name)


class Filling(Annealing):
    """Stands in for annealing: a lot takes so much work."""

    def __init__(self, asked: SearchQuestion, share: float, work: int) -> None:
        super().__init__(asked)
        self.share, self.work = share, work
        self.lots = self.beside = 0

    def ready(self) -> bool:
        return True

    @property
    def shortest(self) -> int:
        return self.work

    def lot(self, most: int | None = None) -> int:
        self.lots += most is None
        self.beside += most is not None
        return self.asked.limits.clock.spend(moves=self.work)


@pytest.fixture
def asked() -> SearchQuestion:
    problem = training_chain(Random(43))
    found = SearchQuestion(problem, peak_bound(problem).peak * 3 // 2, Limits(limited(moves=1 << 40)))
    found.pool.offer(np.arange(2 * LAYERS), "test")
    return found


def spent(*operators: Working) -> list[int]:
    return [operator.steps * operator.work for operator in operators]


def test_each_has_its_share_whatever_its_steps_take(asked: SearchQuestion) -> None:
    one, other = Working(asked, "one", 0.6, 10), Working(asked, "other", 0.3, 70)
    idle = Filling(asked, 0.1, 1 << 30)
    scheduler = Scheduler(asked, (one, other), idle)
    for _ in range(500):
        assert scheduler.step()
    mine, theirs = spent(one, other)
    assert mine == pytest.approx(2 * theirs, rel=0.1)
    assert idle.lots == 0  # its step is too long for its turn to come


def test_a_long_step_waits_for_the_short_ones(asked: SearchQuestion) -> None:
    short, long = Working(asked, "short", 0.5, 10), Working(asked, "long", 0.25, 1000)
    scheduler = Scheduler(asked, (short, long), Filling(asked, 0.25, 1 << 30))
    while not long.steps:
        scheduler.step()
    assert spent(short)[0] == pytest.approx(2000, rel=0.01)


def test_what_gains_gets_the_rest(asked: SearchQuestion) -> None:
    gaining, idle = Working(asked, "gaining", 0.1, 10, gain=1.0), Working(asked, "idle", 0.1, 10)
    scheduler = Scheduler(asked, (gaining, idle), Filling(asked, 0.1, 1 << 30))
    for _ in range(400):
        scheduler.step()
    assert gaining.steps > 5 * idle.steps


def test_who_was_not_ready_gets_nothing_for_that_time(asked: SearchQuestion) -> None:
    one, late = Working(asked, "one", 0.5, 10), Working(asked, "late", 0.5, 10)
    late.able = False
    scheduler = Scheduler(asked, (one, late), Filling(asked, 0.1, 1 << 30))
    for _ in range(100):
        scheduler.step()
    late.able, before = True, one.steps
    for _ in range(20):
        scheduler.step()
    assert late.steps == pytest.approx(one.steps - before, abs=2)


def test_the_filler_works_beside_long_steps_and_pays_for_it(asked: SearchQuestion) -> None:
    filler, long = Filling(asked, 0.5, 10), Working(asked, "long", 0.5, 100)
    scheduler = Scheduler(asked, (long,), filler)
    while not long.steps:
        scheduler.step()
    assert filler.beside == 10
    before = filler.lots
    while long.steps < 2:
        scheduler.step()
    assert filler.lots == before  # what it did beside was its turn


@pytest.mark.parametrize("known_at_once", [True, False])
def test_the_filler_works_as_long_as_a_step_that_takes_more_than_was_expected(
    asked: SearchQuestion, known_at_once: bool
) -> None:
    """However early or late it is known what the step takes."""

    class Longer(Working):
        def begin(self) -> Step:
            def step(limits: Limits) -> list[Offer]:
                work = limits.clock.work
                for done in range(0, 700, 100):
                    work.under_way = 0 if known_at_once else done
                    if not known_at_once:
                        sleep(0.001)
                work.under_way = 0
                limits.clock.spend(moves=700)
                return []

            return step

    filler, long = Filling(asked, 0.5, 10), Longer(asked, "long", 0.5, 100)
    scheduler = Scheduler(asked, (long,), filler)
    while not long.steps:
        scheduler.step()
    assert filler.beside == 70


@pytest.mark.parametrize("beside", [True, False])
def test_what_goes_beside_does_not_wait_for_a_long_step(asked: SearchQuestion, beside: bool) -> None:
    """An order that was found during a long search for a bound is made to fit before that ends."""
    short, filler = Working(asked, "short", 0.5, 10), Filling(asked, 0.1, 100)
    short.able, short.goes_beside = False, beside
    steps: list[int] = []

    class Long(Working):
        def begin(self) -> Step:
            short.able = True  # from when it has begun
            return super().begin()

        def end(self, entries: Sequence[Contender | None]) -> None:
            steps.append(short.steps)
            super().end(entries)

    long = Long(asked, "long", 0.4, 10_000)
    scheduler = Scheduler(asked, (long, short), filler)
    while not long.steps:
        assert scheduler.step()
    assert (steps[0] > 100) == beside
    assert short.steps == steps[0]
    assert filler.beside > 0


def test_nobody_ready_is_the_end(asked: SearchQuestion) -> None:
    idle = Working(asked, "idle", 0.5, 10)
    idle.able = False
    asked.pool.entries.clear()
    assert not Scheduler(asked, (idle,), Annealing(asked)).step()


def test_the_page_says_the_shares() -> None:
    page = (Path(__file__).parents[4] / "docs" / "explanation" / "how-auto-works.md").read_text()
    told = {name: int(share) / 100 for name, share in re.findall(r"^\| ([a-z ]+) \| .* \| (\d+)% \|$", page, re.M)}
    problem = training_chain(Random(1))
    accounts = Auto(problem, peak_bound(problem).peak, Limits()).scheduler.accounts
    assert {account.operator.name: account.operator.share for account in accounts} == told
