"""Schedules by name, against torch.optim.lr_scheduler: its own rates over steps, and what it wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from remat_cli.training.rates import rate_schedule
from tests.remat_cli.training.test_optimizers import batches

FILES = Path(__file__).parents[2] / "data" / "torch"
FORWARD = FILES / "language_train_whole.onnx"
WRITTEN: dict[str, dict[str, Any]] = {  # examples/pytorch/export_optimizers.py
    "sgd_cosine": {"schedule": "cosine", "steps": 8, "warmup": 2},
    "sgd_linear": {"schedule": "linear", "steps": 8},
}


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("name", WRITTEN)
def test_ten_steps_on_a_schedule_are_pytorchs(name: str, inside: bool) -> None:
    with np.load(FILES / "optimizers.npz") as stored:
        seen = {key.removeprefix(f"{name}."): stored[key] for key in stored if key.startswith(f"{name}.")}
    model = remat.grad(FORWARD, optimizer="sgd" if inside else "none")
    step = remat.step(model, FORWARD, learning_rate=0.1, **({} if inside else {"optimizer": "sgd"}), **WRITTEN[name])
    rates, losses = [], []
    for batch in batches():
        rates.append(step.next_rate)
        losses.append(step(batch))
    np.testing.assert_allclose(rates, seen["rates"], atol=1e-12)
    np.testing.assert_allclose(losses, seen["losses"], rtol=1e-4)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "step", "exponential"])
def test_rates_are_those_of_lr_scheduler(name: str, seed: int) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(seed)
    warmup, length, every = (int(n) for n in random.integers(0, 30, 3))
    length, every = length + 1, every + 1
    end, factor, start = (float(x) for x in random.uniform(0.05, 1, 3))
    own: dict[str, Any] = {
        "constant": {},
        "linear": {"steps": warmup + length, "end": end},
        "cosine": {"steps": warmup + length, "end": end},
        "step": {"every": every, "factor": factor},
        "exponential": {"factor": factor},
    }[name]
    schedule = rate_schedule(name, {**own, **({"warmup": warmup, "start": start} if warmup else {})})
    rate, kinds = 0.3, torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], rate)
    main = {
        "constant": lambda: kinds.ConstantLR(optimizer, 1.0, 1),
        "linear": lambda: kinds.LinearLR(optimizer, 1.0, end, length),
        "cosine": lambda: kinds.CosineAnnealingLR(optimizer, length, rate * end),
        "step": lambda: kinds.StepLR(optimizer, every, factor),
        "exponential": lambda: kinds.ExponentialLR(optimizer, factor),
    }[name]
    theirs = main() if not warmup else None
    if warmup:
        theirs = kinds.SequentialLR(optimizer, [kinds.LinearLR(optimizer, start, 1.0, warmup), main()], [warmup])
    for update in range(warmup + length):
        assert rate * schedule.at(update) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-6, abs=1e-12)
        optimizer.step()
        theirs.step()


def test_a_schedule_may_be_a_function_and_multiplies_what_is_set() -> None:
    step = remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD, learning_rate=0.5, schedule=lambda n: 1 / (n + 1))
    assert step.next_rate == 0.5
    step(next(batches()))
    assert step.next_rate == 0.25
    step.learning_rate = 0.1
    assert step.next_rate == 0.05


@pytest.mark.parametrize(
    "said, words",
    [
        ({"schedule": "cosin", "steps": 3}, "did you mean cosine"),
        ({"schedule": "cosine"}, "is told its steps"),
        ({"schedule": "linear", "steps": 5, "warmup": 5}, "more than those of the warm-up"),
        ({"schedule": "step"}, "after how many updates: every"),
        ({"schedule": "exponential"}, "factor=0.99"),
        ({"schedule": "cosine", "steps": 5, "factor": 0.1}, "a cosine schedule has no factor; it has steps, end"),
        ({"steps": 5}, "a constant schedule has no steps"),
        ({"schedule": "step", "every": 0}, "every is at least 1"),
        ({"schedule": "linear", "steps": 5.5}, "steps is a whole number"),
        ({"schedule": 3}, "a name or a function"),
        ({"schedule": lambda n: 1.0, "steps": 5}, "says so itself"),
    ],
)
def test_what_a_schedule_cannot_mean_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(remat.Usage, match=words):
        remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD, **said)
