"""Ten steps of each optimizer as users set them, against PyTorch's own (examples/pytorch/export_optimizers.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import remat_cli as remat
from tests.sampling import few

FILES = Path(__file__).parents[2] / "data" / "torch"
FORWARD = FILES / "language_train_whole.onnx"
STEPS = 10
OWN = {"weight_decay": 0.0, "lr": 0.03}
SAID: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": "sgd", "learning_rate": 0.1},
    "sgd_decay": {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.1},
    "momentum": {"optimizer": "momentum", "learning_rate": 0.1, "momentum": 0.8},
    "momentum_decay": {"optimizer": "momentum", "learning_rate": 0.1, "momentum": 0.8, "weight_decay": 0.1},
    "adam": {"optimizer": "adam"},
    "adam_decay": {"optimizer": "adam", "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
    "adamw": {"optimizer": "adamw", "learning_rate": 0.01},
    "adamw_decay": {"optimizer": "adamw", "betas": (0.9, 0.95), "weight_decay": 0.5},
    "adamw_groups": {"optimizer": "adamw", "weight_decay": 0.1, "groups": {"*bias": OWN, "ln*": OWN}},
    "adamw_clipped": {"optimizer": "adamw", "clip": 0.5},
    "sgd_clipped": {"optimizer": "sgd", "learning_rate": 0.1, "clip": 0.5},
}


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    for _ in range(STEPS):
        yield random.integers(0, 12, (2, 6)), random.integers(0, 12, (2, 6))


def check(step: Any, name: str) -> None:
    with np.load(FILES / "optimizers.npz") as stored:
        seen = {key.removeprefix(f"{name}."): stored[key] for key in stored if key.startswith(f"{name}.")}
    losses = [step(batch) for batch in batches()]
    np.testing.assert_allclose(losses, seen.pop("losses"), rtol=1e-4)
    seen.pop("rates")
    weights = step.state_dict()
    for key, value in seen.items():
        if key != "qkv.weight":
            np.testing.assert_allclose(weights[key], value, atol=2e-4)


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("name", few(SAID, 4))
def test_ten_steps_are_pytorchs(name: str, inside: bool) -> None:
    said = SAID[name]
    if inside:
        check(remat.step(remat.grad(FORWARD, **said), FORWARD), name)
    else:
        check(remat.step(remat.grad(FORWARD), FORWARD, **said), name)


class SGD:
    """As much of a torch.optim object as is read."""

    def __init__(self, *groups: dict[str, Any], **extra: Any) -> None:
        plain = {"lr": 0.1, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False}
        self.param_groups = [{**plain, **group, **extra} for group in groups]


class AdamW(SGD):
    def __init__(self, *groups: dict[str, Any]) -> None:
        plain = {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01, "amsgrad": False}
        self.param_groups = [{**plain, **group} for group in groups]


class Parameter:
    requires_grad = True


class Module:
    def __init__(self) -> None:
        names = remat.step(remat.grad(FORWARD), FORWARD, optimizer="sgd").state_dict()
        self.parameters = {name: Parameter() for name in names}

    def named_parameters(self, remove_duplicate: bool = True) -> Any:
        return self.parameters.items()


def test_an_optimizer_of_pytorchs_is_taken_with_its_groups() -> None:
    module = Module()
    own = [p for name, p in module.parameters.items() if name.endswith("bias") or name.startswith("ln")]
    rest = [p for p in module.parameters.values() if p not in own]
    plain = AdamW({"params": rest + own})
    grouped = AdamW({"params": rest, "weight_decay": 0.1}, {"params": own, "weight_decay": 0.0, "lr": 0.03})
    check(remat.step(remat.grad(FORWARD, optimizer=plain), FORWARD), "adamw")
    check(remat.step(remat.grad(FORWARD, params=module, optimizer=grouped), FORWARD), "adamw_groups")
    check(remat.step(remat.grad(FORWARD, optimizer=SGD({"params": rest + own}, momentum=0.8)), FORWARD), "momentum")


def test_what_the_optimizer_does_not_hold_is_not_trained() -> None:
    module = Module()
    held = [p for name, p in module.parameters.items() if name.startswith("down")]
    step = remat.step(remat.grad(FORWARD, params=module, optimizer=SGD({"params": held})), FORWARD)
    assert set(step.state_dict()) == {"down.weight", "down.bias"}


def test_what_cannot_be_meant_of_an_optimizer_is_refused() -> None:
    parameters = [Parameter(), Parameter()]
    for said, words in [
        ({"optimizer": "lion"}, "no optimizer 'lion'"),
        ({"optimizer": "sgd", "betas": (0.9, 0.95)}, "'sgd' has no betas; it is a setting of 'adam' and 'adamw'"),
        ({"optimizer": "sgd", "momentum": 0.9}, "'sgd' has no momentum; it is a setting of 'momentum'"),
        ({"optimizer": "adamw", "betas": (0.9,)}, "betas takes 2 numbers"),
        ({"optimizer": "adamw", "betas": (0.9, 1.5)}, "betas are at least 0 and below 1"),
        ({"optimizer": "adamw", "groups": {"*.bias": {"decay": 0}}}, "no setting 'decay'"),
        ({"clip": 1.0}, "an optimizer's"),
        ({"optimizer": "sgd", "clip": 0}, "clipped to a norm of 0"),
        ({"weight_decay": 0.1}, "'none' has no weight_decay"),
        ({"optimizer": SGD({"params": parameters}, nesterov=True, momentum=0.9)}, "nesterov=True of the optimizer"),
        ({"optimizer": SGD({"params": parameters[:1]}, {"params": parameters[1:], "lr": 1.0})}, "give params=module"),
        ({"optimizer": SGD({"params": parameters}), "weight_decay": 0.1}, "weight_decay: the optimizer"),
        ({"optimizer": 3}, "a name or one of PyTorch's, not int"),
        ({"optimizer": type("Lion", (SGD,), {})({"params": parameters})}, "Lion cannot be written"),
    ]:
        with pytest.raises(remat.Usage, match=words):
            remat.grad(FORWARD, **said)
    with pytest.raises(remat.BadInput, match="no parameter matches the group 'head\\.bias'"):
        remat.grad(FORWARD, optimizer="sgd", groups={"head.bias": {"weight_decay": 0.1}})
    with pytest.raises(remat.Usage, match="say weight_decay to grad"):
        remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD, weight_decay=0.1)
