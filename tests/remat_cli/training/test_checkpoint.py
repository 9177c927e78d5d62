"""A checkpoint says how it was trained: one of another optimizer is refused, other settings of it are said."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from tests.remat_cli.training.test_optimizers import batches
from tests.sampling import few

FORWARD = Path(__file__).parents[2] / "data" / "torch" / "language_train_whole.onnx"
ADAMW: dict[str, Any] = {"optimizer": "adamw", "weight_decay": 0.1}
PLAIN = {"*bias": {"weight_decay": 0.0}}


def made(inside: bool, more: dict[str, Any], said: dict[str, Any]) -> remat.Step:
    """`said` of the optimizer, `more` of the step."""
    if inside:
        return remat.step(remat.grad(FORWARD, **said), FORWARD, **more)
    return remat.step(remat.grad(FORWARD), FORWARD, **said, **more)


@pytest.mark.parametrize("inside", few([True, False], 1), ids=["inside", "outside"])
@pytest.mark.parametrize(
    "before, now, words",
    [
        (ADAMW, {**ADAMW, "weight_decay": 0.2}, "weight_decay was 0.1 and is 0.2"),
        (ADAMW, {**ADAMW, "betas": (0.9, 0.95)}, "beta2 was 0.999 and is 0.95"),
        (ADAMW, {**ADAMW, "clip": 1.0}, "clip was not there and is 1.0"),
        ({**ADAMW, "groups": PLAIN}, ADAMW, r"\*bias was .*weight_decay.* and is not there"),
        ({"optimizer": "adamw"}, {"optimizer": "adamw", "weight_decay": 0.01}, ""),
        (ADAMW, {**ADAMW, "learning_rate": 0.5}, ""),
    ],
)
def test_other_settings_are_said(
    tmp_path: Path, inside: bool, before: dict[str, Any], now: dict[str, Any], words: str
) -> None:
    step = made(inside, {}, before)
    step(next(batches()))
    step.save(tmp_path / "c.npz")
    other = made(inside, {}, now)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", remat.RematWarning)
        other.load(tmp_path / "c.npz")
    assert [one.filename for one in heard] == [__file__] * bool(words)
    if words:
        import re

        assert re.search(words, str(heard[0].message))
    assert other.updates == 1


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_another_optimizer_is_refused_and_nothing_taken(tmp_path: Path, inside: bool) -> None:
    step = made(inside, {}, {"optimizer": "adam"})
    step(next(batches()))
    step.save(tmp_path / "c.npz")
    other = made(inside, {}, {"optimizer": "adamw"})
    weights = {name: value.copy() for name, value in other.state_dict().items()}
    with pytest.raises(remat.BadInput, match="of the optimizer adam, and this step has adamw"):
        other.load(tmp_path / "c.npz")
    assert other.updates == 0
    assert all((value == weights[name]).all() for name, value in other.state_dict().items())


def test_another_schedule_is_said_and_the_same_goes_on(tmp_path: Path) -> None:
    course: dict[str, Any] = {"schedule": "cosine", "steps": 10, "learning_rate": 0.1}
    step = made(True, course, ADAMW)
    for batch in batches():
        step(batch)
        if step.updates == 4:
            break
    step.save(tmp_path / "c.npz")
    same, other = made(True, course, ADAMW), made(True, {"learning_rate": 0.1}, ADAMW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same.load(tmp_path / "c.npz")
    assert same.next_rate == step.next_rate != 0.1
    with pytest.warns(remat.RematWarning, match="name was cosine and is constant"):
        other.load(tmp_path / "c.npz")


def test_sums_of_other_batches_are_refused(tmp_path: Path) -> None:
    step = made(False, {"accumulate": 3}, ADAMW)
    step(next(batches()))
    step.save(tmp_path / "c.npz")
    with pytest.raises(remat.BadInput, match="say accumulate=3"):
        made(False, {"accumulate": 2}, ADAMW).load(tmp_path / "c.npz")
    made(False, {"accumulate": 3}, ADAMW).load(tmp_path / "c.npz")


def test_files_that_are_no_checkpoints_are_refused(tmp_path: Path) -> None:
    step = made(True, {}, ADAMW)
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("{}")
    for name in ("other.npz", "array.npy", "text.npz", "none.npz"):
        with pytest.raises(remat.BadInput, match="cannot read the checkpoint"):
            step.load(tmp_path / name)
