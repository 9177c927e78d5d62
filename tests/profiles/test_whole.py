"""Scaling to the whole graph: the costs sum to what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from profiles import whole
from profiles.bench import OpBench
from profiles.device import find
from profiles.whole import (
    FEW,
    LEAST_RUNS,
    TAX_NS,
    Times,
    Whole,
    WholeGraph,
    calibrate,
    time_whole,
    trace_whole,
    undisturbed,
    untaxed,
)

TIMES = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(1_000, 10**7), st.none() | st.integers(1_000, 10**7)), min_size=1
)


@given(TIMES, st.integers(10**5, 10**9), st.integers(0, 10**5))
def test_costs_sum_to_the_whole(ops, ns, elsewhere):
    assume(ns > 2 * TAX_NS["cpu"] * len(ops))
    alone = {str(place): float(time) for place, (_, time, _) in enumerate(ops)}
    kinds = {str(place): kind for place, (kind, _, _) in enumerate(ops)}
    inside = {str(place): time for place, (_, _, time) in enumerate(ops) if time is not None}
    assume(inside or elsewhere)
    made = calibrate(Whole((ns,) * 3, inside, elsewhere), alone, kinds, "cpu")
    costs = {name: made.apply(kinds[name], alone[name]) for name in alone}
    assert sum(costs.values()) == pytest.approx(ns, rel=1e-3, abs=len(ops))
    assert min(costs.values()) >= 0


def test_what_the_trace_takes_is_no_work_and_a_launch_costs_little():
    """A hundred tiny ops that the trace says take 3 us more than alone, and a product that fills the rest."""
    alone = {f"tiny{place}": 300.0 for place in range(100)} | {"product": 1e6}
    kinds = {name: "M" if name == "product" else "T" for name in alone}
    inside = {name: int(ns) + 3000 for name, ns in alone.items()}
    whole = Whole((1_110_000,) * 5, inside)
    work = untaxed(whole, alone, "cpu")
    assert work["product"] == pytest.approx(1e6)
    assert work["tiny0"] == pytest.approx(300)
    made = calibrate(whole, alone, kinds, "cpu")
    assert made.apply("T", 300) == pytest.approx(1100, rel=0.05)
    assert made.launch == pytest.approx(1000, rel=0.05)
    assert made.apply("M", 1e6) == pytest.approx(1e6, rel=0.01)


def test_a_class_that_is_slower_inside_costs_more():
    alone = {"conv": 1e6, "add": 1e6}
    made = calibrate(
        Whole((3_000_000,) * 3, {"conv": 1_000_000, "add": 2_000_000}), alone, {"conv": "C", "add": "A"}, "cpu"
    )
    assert made.apply("A", 1e6) == pytest.approx(2e6, rel=0.02)
    assert made.apply("C", 1e6) == pytest.approx(1e6, rel=0.02)
    assert made.apply("unseen", 1e6) == pytest.approx(1.5e6, rel=0.02)


def test_runs_that_nobody_disturbed_are_what_counts():
    assert undisturbed([(90, 0.4), (10, 0.0), (12, 0.01)]) == Times((10, 12))
    assert undisturbed([(90, 0.4), (10, 0.0), (80, 0.2)]) == Times((90, 10, 80), 0.2)
    assert undisturbed([(90, 0.0)]) == Times((90,))


def test_of_two_times_that_a_graph_ran_the_quieter_one_counts():
    quiet, busy = Times((10,)), Times((30, 40), 0.5)
    assert Times() + quiet == quiet + Times() == quiet + busy == busy + quiet == quiet
    assert Times() + busy == busy
    assert quiet + Times((11,), 0.05) == Times((10, 11), 0.05)


class _Slow:
    """Stands in for a graph whose run takes `seconds` on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.seconds, self.runs = 0.0, seconds, 0
        monkeypatch.setattr(whole, "session", lambda *_, **__: None)
        monkeypatch.setattr(whole, "bind", lambda *_: None)
        monkeypatch.setattr(whole, "run", lambda *_: self._run())
        monkeypatch.setattr(whole.time, "perf_counter", lambda: self.now)

    def _run(self) -> None:
        self.now += self.seconds
        self.runs += 1


@pytest.mark.parametrize(("seconds", "runs"), [(15.0, 1 + FEW), (2.0, 4 + LEAST_RUNS)])
def test_a_slow_graph_is_run_a_few_times(monkeypatch, seconds, runs):
    """One that takes longer than its series may is not warmed; the clock here stands still but for its runs."""
    pages = iter(range(10**6))
    monkeypatch.setattr(whole, "fresh_pages", lambda: next(pages))
    slow = _Slow(monkeypatch, seconds)
    found = time_whole(WholeGraph(b"", (), {}, Path()), find("cpu", 1), 3.0)
    assert slow.runs == runs
    assert len(found.runs) <= runs


def test_what_took_its_whole_time_before_is_not_timed_again(monkeypatch):
    asked = []
    with OpBench(find("cpu", 1)) as bench:
        monkeypatch.setattr(bench, "_ask", lambda function, *_, **__: asked.append(function) or ({}, 0, 0.0))
        found = bench.whole(WholeGraph(b"", (), {}, Path()), 12.0, Times((15 * 10**9,)), 0.0)
    assert asked == [trace_whole]
    assert found.times == (15 * 10**9,)
