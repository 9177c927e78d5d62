"""A bound step: against an optimizer written out here, on small models of PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from remat_cli.training.scale import LossScale

FILES = Path(__file__).parents[2] / "data" / "torch"
FORWARD = FILES / "language_train_whole.onnx"
Batch = tuple[np.ndarray, np.ndarray]


def _batches(count: int) -> Iterator[Batch]:
    random = np.random.default_rng(0)
    for _ in range(count):
        yield random.integers(0, 12, (2, 6)), random.integers(0, 12, (2, 6))


class _AdamW:
    """Loshchilov and Hutter's, with PyTorch's defaults, on gradients that the session gives."""

    def __init__(self, rate: float) -> None:
        self.step = remat.step(remat.grad(FORWARD), FORWARD, optimizer="sgd", learning_rate=0.0)
        self.rate, self.count = rate, 0
        self.first: dict[str, Any] = {}
        self.second: dict[str, Any] = {}

    def gradients(self, batch: Batch) -> dict[str, np.ndarray]:
        session, feeds = self.step._session, {"x": batch[0], "labels": batch[1], **self.step.state_dict()}
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds), strict=True))

    def apply(self, gradients: dict[str, np.ndarray]) -> None:
        self.count += 1
        for name, value in self.step._state.items():
            gradient = gradients[f"{name}_grad"].astype(np.float64)
            first = self.first[name] = 0.9 * self.first.get(name, 0) + 0.1 * gradient
            second = self.second[name] = 0.999 * self.second.get(name, 0) + 0.001 * gradient**2
            mean, square = first / (1 - 0.9**self.count), second / (1 - 0.999**self.count)
            moved = value * (1 - self.rate * 0.01) - self.rate * mean / (np.sqrt(square) + 1e-8)
            self.step._state[name] = moved.astype(np.float32)


def test_a_step_with_its_optimizer_inside_and_one_without_train_alike() -> None:
    inside = remat.step(remat.grad(FORWARD, optimizer="adamw", learning_rate=0.01), FORWARD)
    outside = remat.step(remat.grad(FORWARD), FORWARD, optimizer="adamw", learning_rate=0.01)
    witness = _AdamW(0.01)
    for batch in _batches(5):
        found = witness.gradients(batch)
        witness.apply(found)
        assert inside(batch) == pytest.approx(float(found["loss"]), rel=1e-5)
        assert outside({"labels": batch[1], "x": batch[0]}) == pytest.approx(float(found["loss"]), rel=1e-5)
    for name in ("wpe.weight", "down.weight", "lnf.bias"):  # a key's bias has no gradient but noise
        np.testing.assert_allclose(inside.state_dict()[name], witness.step.state_dict()[name], atol=1e-4)


def test_gradients_of_several_batches_are_averaged() -> None:
    step = remat.step(remat.grad(FORWARD), FORWARD, optimizer="sgd", learning_rate=0.5, accumulate=2)
    before = step.state_dict()
    witness = _AdamW(0.0)
    batches = list(_batches(2))
    sums = [witness.gradients(batch) for batch in batches]
    step(batches[0])
    assert (step.calls, step.updates) == (1, 0)
    np.testing.assert_array_equal(step.state_dict()["ln1.weight"], before["ln1.weight"])
    step(batches[1])
    assert (step.calls, step.updates) == (2, 1)
    for name, value in before.items():
        mean = (sums[0][f"{name}_grad"] + sums[1][f"{name}_grad"]) / 2
        np.testing.assert_allclose(step.state_dict()[name], value - 0.5 * mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_checkpoint_goes_on_as_if_there_had_been_no_break(tmp_path: Path, accumulate: int) -> None:
    model = remat.grad(FORWARD)
    options: dict[str, Any] = {"optimizer": "adam", "accumulate": accumulate}
    step, other = remat.step(model, FORWARD, **options), remat.step(model, FORWARD, **options)
    batches = list(_batches(5))
    for batch in batches[:2]:
        step(batch)
    step.save(tmp_path / "two.npz")
    losses = [step(batch) for batch in batches[2:]]
    other.load(tmp_path / "two.npz")
    assert [other(batch) for batch in batches[2:]] == losses
    assert (other.calls, other.updates) == (step.calls, step.updates)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("rate", [None, 0.05])
def test_a_checkpoint_keeps_the_learning_rate_that_was_set(tmp_path: Path, inside: bool, rate: float | None) -> None:
    model = remat.grad(FORWARD, optimizer="adamw" if inside else "none")
    options: dict[str, Any] = {} if inside else {"optimizer": "adamw"}
    step, other = remat.step(model, FORWARD, **options), remat.step(model, FORWARD, learning_rate=0.5, **options)
    batches = list(_batches(5))
    step(batches[0])
    if rate is not None:
        step.learning_rate = rate
    step(batches[1])
    step.save(tmp_path / "two.npz")
    losses = [step(batch) for batch in batches[2:]]
    other.load(tmp_path / "two.npz")
    assert other.learning_rate == step.learning_rate == pytest.approx(rate or 0.01)
    assert [other(batch) for batch in batches[2:]] == losses


def test_an_optimizers_state_is_given_whole_or_not_at_all() -> None:
    step = remat.step(remat.grad(FORWARD, optimizer="adam"), FORWARD)
    values = {**step.state_dict(), "lnf.bias_adam_m": np.zeros(8, np.float32)}
    with pytest.raises(remat.BadInput, match="some of the optimizer's state, but not for 'step'"):
        remat.step(remat.grad(FORWARD, optimizer="adam"), values)


def test_a_plan_trains_as_its_model_does() -> None:
    model = remat.grad(FORWARD, optimizer="momentum")
    plan = remat.solve(model, minimize="peak", work_limit=20_000, cache=False)
    plain, planned = remat.step(model, FORWARD), remat.step(plan, FORWARD)
    assert [plain(batch) for batch in _batches(4)] == [planned(batch) for batch in _batches(4)]


class _Tensor:
    """As much of a tensor as a module's state is loaded through."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = np.array(array)
        self.shape = self.array.shape

    def detach(self) -> _Tensor:
        return self

    cpu = detach

    @property
    def dtype(self) -> str:
        return f"torch.{self.array.dtype}"

    def numpy(self) -> np.ndarray:
        return self.array

    def new_tensor(self, array: np.ndarray) -> _Tensor:
        return _Tensor(array.astype(self.array.dtype))

    def copy_(self, other: _Tensor) -> None:
        self.array[...] = other.array

    def add_(self, number: int) -> None:
        self.array += number


class _Module:
    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values = {name: _Tensor(value) for name, value in values.items()}

    def state_dict(self) -> dict[str, _Tensor]:
        return self.values


def test_what_was_trained_goes_back_into_the_module() -> None:
    with np.load(FILES / "conv_train.npz") as stored:
        before = {name.removeprefix("before."): stored[name] for name in stored if name.startswith("before.")}
        batch, after = (stored["x"], stored["labels"]), stored["after.bn1.running_var"]
    module = _Module(before)
    step = remat.step(remat.grad(FILES / "conv_train_whole.onnx", optimizer="sgd"), module.state_dict())
    step(batch)
    step.load_into(module)
    np.testing.assert_allclose(module.values["bn1.running_var"].array, after, rtol=1e-5)
    assert module.values["bn1.num_batches_tracked"].array == before["bn1.num_batches_tracked"] + 1
    np.testing.assert_array_equal(module.values["fc.weight"].array, step.state_dict()["fc.weight"])
    assert (before["fc.weight"] != module.values["fc.weight"].array).any()
    step.load_into(module)
    assert module.values["bn1.num_batches_tracked"].array == before["bn1.num_batches_tracked"] + 1
    with pytest.raises(remat.Usage, match="the module has no 'conv1\\.weight'"):
        step.load_into(_Module({"w": before["fc.weight"]}))


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    gradients, updating = remat.grad(FORWARD), remat.grad(FORWARD, optimizer="sgd")
    for model, options, words in [
        (gradients, {}, "say what is done with them"),
        (updating, {"optimizer": "sgd"}, "updates its parameters itself"),
        (updating, {"accumulate": 2}, "updates its parameters itself"),
        (gradients, {"optimizer": "lion"}, "no optimizer 'lion'"),
        (gradients, {"optimizer": "sgd", "accumulate": 0}, "accumulate is at least 1"),
    ]:
        with pytest.raises(remat.Usage, match=words):
            remat.step(model, FORWARD, **options)
    step = remat.step(updating, FORWARD, learning_rate=0.5)
    ids, labels = next(_batches(1))
    before = {name: value.copy() for name, value in step.state_dict().items()}
    for batch in ({"x": ids}, {"x": ids, "labels": labels, "mask": ids}, (ids,), (ids, labels, ids)):
        with pytest.raises(remat.Usage, match="a batch holds 'x', 'labels'"):
            step(batch)
    with pytest.raises(remat.BadInput, match=r"'x' is \[2, 5\], but the step takes \[2, 6\]"):
        step((ids[:, :5], labels))
    with pytest.raises(remat.BadInput, match="'x' is float64, but the step takes int64"):
        step((ids * 0.5, labels))
    (tmp_path / "c.npz").write_bytes(b"PK")
    with pytest.raises(remat.BadInput, match="cannot read the checkpoint"):
        step.load(tmp_path / "c.npz")
    remat.step(remat.grad(FORWARD, optimizer="adam"), FORWARD).save(tmp_path / "d.npz")
    with pytest.raises(remat.BadInput, match="not of this step"):
        step.load(tmp_path / "d.npz")
    assert all((value == before[name]).all() for name, value in step.state_dict().items())
    with pytest.raises(remat.BadInput, match="no value for 'wpe\\.weight'"):
        remat.step(updating, {})


def _changed_by(step: Any, batch: Batch) -> list[str]:
    before = {name: value.copy() for name, value in step._state.items()}
    step(batch)
    return [name for name, value in step._state.items() if (value != before[name]).any()]


@pytest.mark.parametrize("optimizer", ["adamw", None])
def test_a_float16_step_whose_gradients_overflow_is_left_out(tmp_path: Path, optimizer: str | None) -> None:
    model = remat.grad(FORWARD, optimizer=optimizer or "none", precision="float16")
    options = {} if optimizer else {"optimizer": "adamw"}
    step, exact = (
        remat.step(m, FORWARD, **options) for m in (model, remat.grad(FORWARD, optimizer=optimizer or "none"))
    )
    batches = list(_batches(4))
    assert step.loss_scale is not None
    assert exact.loss_scale is None
    step.loss_scale.value = 1e38
    assert _changed_by(step, batches[0]) == []
    assert (step.calls, step.updates, step.loss_scale.skipped, step.loss_scale.value) == (1, 0, 1, 5e37)
    step.loss_scale.value = 1024.0
    for batch in batches:
        assert step(batch) == pytest.approx(exact(batch), rel=1e-2)
    assert (step.calls, step.updates, step.loss_scale.taken) == (5, 4, 4)
    step.save(tmp_path / "five.npz")
    other = remat.step(model, FORWARD, **options)
    other.load(tmp_path / "five.npz")
    assert other.loss_scale == step.loss_scale
    assert other(batches[0]) == step(batches[0])


def test_a_loss_scale_grows_while_all_is_well_and_ends_where_nothing_helps() -> None:
    scale = LossScale()
    for _ in range(2000):
        scale.heard(True)
    assert scale == LossScale(131072.0, 2000, 0)
    for _ in range(27):
        scale.heard(False)
    with pytest.raises(remat.RematError, match="look at the batch and the learning rate"):
        scale.heard(False)
    assert scale == LossScale(2.0**-10, 0, 27)
