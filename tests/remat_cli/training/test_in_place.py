"""Steps that hold their state once beside steps with both copies: the same bits, and known when they break."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from remat_cli.training.failing import BROKEN
from tests.remat_cli.training.kills import Kills
from tests.sampling import few

FORWARD = Path(__file__).parents[2] / "data" / "torch" / "language_train_whole.onnx"


def batches(count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    for _ in range(count):
        yield random.integers(0, 12, (2, 6)), random.integers(0, 12, (2, 6))


def same(one: remat.Step, other: remat.Step) -> bool:
    pairs = ((one._state[name], value) for name, value in other._state.items())
    return all(first.tobytes() == second.tobytes() for first, second in pairs)


@pytest.mark.parametrize("optimizer", few(["sgd", "momentum", "adam", "adamw"], 1))
def test_ten_steps_of_a_plan_are_those_of_the_graph_with_both_copies(optimizer: str) -> None:
    model = remat.grad(FORWARD, optimizer=optimizer)
    plan = remat.solve(model, budget="85%", work_limit=20_000, cache=False)
    assert len(plan.recorded.in_place) > 10
    once, twice = remat.step(plan, FORWARD), remat.step(model, FORWARD, keep_state=True)
    plain = remat.step(model, FORWARD)
    for batch in batches(10):
        assert once(batch) == twice(batch) == plain(batch)
        assert same(once, twice)
        assert same(plain, twice)


def test_a_model_in_memory_that_fits_as_it_is_steps_in_place() -> None:
    model = remat.grad(FORWARD, optimizer="adamw")
    plan = remat.solve(model, budget="100%", work_limit=5_000, cache=False)
    once, both = remat.step(plan, FORWARD), remat.step(model, FORWARD, keep_state=True)
    for batch in batches(3):
        assert once(batch) == both(batch)
        assert same(once, both)


@pytest.mark.slow
def test_steps_of_a_default_session_are_in_place_too(tmp_path: Path) -> None:
    """Its order is the runtime's own, and it gives the bits of default sessions that hold both copies."""
    model = remat.grad(FORWARD, optimizer="adamw")
    options: dict[str, Any] = {"session": "default", "work_limit": 5_000, "cache": False}
    plan = remat.solve(model, budget="70%", **options)
    assert len(plan.recorded.in_place) > 10
    plan.save(tmp_path / "m.plan.json")
    once = remat.step(tmp_path / "m.plan.json", FORWARD)
    both = remat.step(plan, FORWARD, keep_state=True)
    for batch in batches(10):
        assert once(batch) == both(batch)
        assert same(once, both)
    tokens, labels = next(batches(1))
    with pytest.raises(remat.BadInput, match="failed on this batch"):
        once((tokens + 1000, labels))
    assert same(once, both)  # no update ran before the embedding
    assert remat.verify(tmp_path / "m.plan.json").ok


def test_accumulated_gradients_update_in_place_too() -> None:
    model = remat.grad(FORWARD)
    options: dict[str, Any] = {"optimizer": "adamw", "accumulate": 2}
    once, twice = remat.step(model, FORWARD, **options), remat.step(model, FORWARD, keep_state=True, **options)
    where = {name: id(value) for name, value in once._state.items()}
    for batch in batches(6):
        assert once(batch) == twice(batch)
        assert same(once, twice)
    assert sum(id(once._state[name]) == place for name, place in where.items()) == len(once._written.state)


def test_a_step_that_breaks_off_is_known_to_have(tmp_path: Path) -> None:
    step = remat.step(remat.grad(FORWARD, optimizer="adamw"), FORWARD)
    first, second, third = batches(3)
    step(first)
    step.save(tmp_path / "one.npz")
    session = step._session

    class Breaking:
        def run(self, *given: Any) -> Any:
            session.run(*given)
            raise KeyboardInterrupt

    step._session = Breaking()
    with pytest.raises(KeyboardInterrupt):
        step(second)
    step._session = session
    for going_on in (lambda: step(third), step.state_dict, lambda: step.save(tmp_path / "half.npz")):
        with pytest.raises(remat.Usage, match="broke off"):
            going_on()
    assert not (tmp_path / "half.npz").exists()
    step.load(tmp_path / "one.npz")
    other = remat.step(remat.grad(FORWARD, optimizer="adamw"), FORWARD, keep_state=True)
    other(first)
    assert step(second) == other(second)
    assert same(step, other)
    assert "keep_state=True" in BROKEN


@pytest.mark.parametrize("accumulate", few([1, 2], 1))
def test_a_batch_that_fails_before_anything_is_written_changes_nothing(accumulate: int) -> None:
    """A token that there is no embedding for: the runtime says so in the forward pass."""
    inside = accumulate == 1
    model = remat.grad(FORWARD, optimizer="adamw" if inside else "none")
    options: dict[str, Any] = {} if inside else {"optimizer": "adamw", "accumulate": accumulate}
    plan = remat.solve(model, budget="88%", work_limit=20_000, cache=False)
    for given in (model, plan):
        step, other = remat.step(given, FORWARD, **options), remat.step(model, FORWARD, keep_state=True, **options)
        for batch in batches(4):
            with pytest.raises(remat.BadInput, match="failed on this batch"):
                step((batch[0] + 1000, batch[1]))
            assert same(step, other)
            assert step(batch) == other(batch)
            assert same(step, other)


def test_a_refused_batch_changes_nothing_and_state_handed_out_stays() -> None:
    step = remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD)
    before = step.state_dict()
    with pytest.raises(remat.Usage):
        step({"x": np.zeros((2, 6), np.int64)})
    for batch in batches(2):
        step(batch)
    after = step.state_dict()
    assert any((before[name] != after[name]).any() for name in before)


def test_a_plan_holds_state_once_and_says_so() -> None:
    model = remat.grad(FORWARD, optimizer="adamw")
    plan = remat.solve(model, budget="88%", work_limit=20_000, cache=False)
    apart = remat.solve(model, budget="99%", work_limit=20_000, cache=False, in_place=False)
    assert not apart.recorded.in_place
    assert plan.recorded.in_place["ln1.weight_new"] == "ln1.weight"
    assert remat.verify(plan).ok
    session = remat.session(plan)
    feeds = {
        **remat.initial_state(FORWARD, plan),
        "x": np.zeros((2, 6), np.int64),
        "labels": np.zeros((2, 6), np.int64),
    }
    was = feeds["ln1.weight"].copy()
    (found,) = session.run(["ln1.weight_new"], feeds)
    assert found is feeds["ln1.weight"]
    assert (found != was).any()
    kept = remat.session(plan, keep_state=True)
    was = feeds["ln1.weight"].copy()
    kept.run(None, feeds)
    assert (feeds["ln1.weight"] == was).all()
    kept.run(None, feeds)
    assert kept.missed.requests == 0  # both copies have the same places


@pytest.mark.parametrize("precision", few(["float32", "float16"], 1))
@pytest.mark.parametrize("planned", few([True, False], 1))
def test_gradients_are_added_to_sums_where_they_lie(planned: bool, precision: str, tmp_path: Path) -> None:
    """The same bits as gradients added up outside of the step, through checkpoints of either."""
    apart, inside = (remat.grad(FORWARD, accumulate=sums, precision=precision) for sums in (False, True))
    assert not any(output.name.endswith("_grad") for output in inside.graph.output)
    given = remat.solve(inside, budget="99%", work_limit=20_000, cache=False) if planned else inside
    if planned and precision == "float32":
        assert isinstance(given, remat.Planned)
        assert given.recorded.in_place["ln1.weight_grad_sum_new"] == "ln1.weight_grad_sum"
    options: dict[str, Any] = {"optimizer": "adamw", "accumulate": 3}
    one, other = remat.step(given, FORWARD, **options), remat.step(apart, FORWARD, keep_state=True, **options)
    both = remat.step(given, FORWARD, keep_state=True, **options)
    for number, batch in enumerate(batches(8)):
        assert one(batch) == other(batch) == both(batch)
        assert same(one, other)
        assert same(both, other)
        if number == 4:  # amid an update
            one.save(tmp_path / "one.npz")
            other.save(tmp_path / "other.npz")
            one.load(tmp_path / "other.npz")
            other.load(tmp_path / "one.npz")
    assert one.updates == 2
    assert "ln1.weight_grad_sum_new" not in one.outputs


def test_a_batch_that_fails_changes_no_sum() -> None:
    model = remat.grad(FORWARD, accumulate=True)
    options: dict[str, Any] = {"optimizer": "adamw", "accumulate": 2}
    step, other = remat.step(model, FORWARD, **options), remat.step(model, FORWARD, keep_state=True, **options)
    for batch in batches(4):
        with pytest.raises(remat.BadInput, match="failed on this batch"):
            step((batch[0] + 1000, batch[1]))
        assert step(batch) == other(batch)
        assert same(step, other)


def test_a_step_that_adds_up_gradients_has_no_optimizer() -> None:
    with pytest.raises(remat.Usage, match=r"give it to remat\.step"):
        remat.grad(FORWARD, accumulate=True, optimizer="adamw")


@pytest.mark.slow
def test_a_step_that_is_killed_or_interrupted_is_never_taken_for_whole(tmp_path: Path) -> None:
    kills = Kills(tmp_path)
    seen = [one for number in range(4) for one in (kills.kill(Random(number)), kills.interrupt(Random(number)))]
    assert "wrong" not in seen
