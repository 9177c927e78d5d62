"""What a module does in training mode and its file does not is answered with a note that names the places."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

import remat_cli as remat

FILES = Path(__file__).parents[2] / "data" / "torch"
LOST = FILES / "language_train_whole.onnx"  # without any dropout
KEPT = FILES / "encoder_random_whole.onnx"  # of a TransformerEncoderLayer, with four


class Part:
    """As much of a module as is asked."""

    training = True

    def __init__(self, **said: Any) -> None:
        for name, value in said.items():
            setattr(self, name, value)


Part.__module__ = "torch.nn.modules.dropout"
KINDS = ("Dropout2d", "MultiheadAttention", "LSTM", "RNN", "BatchNorm2d")
Dropout2d, MultiheadAttention, LSTM, RNN, BatchNorm2d = (type(name, (Part,), {}) for name in KINDS)
for kind in (Dropout2d, MultiheadAttention, LSTM, RNN, BatchNorm2d):
    kind.__module__ = "torch.nn.modules.any"


class Parameter:
    requires_grad = True


class Module:
    def __init__(self, path: Path, *parts: Part) -> None:
        step = remat.step(remat.grad(path), path, optimizer="sgd")
        self.own = {name: Parameter() for name in step.state_dict()}
        self.parts = {f"part{number}": part for number, part in enumerate(parts)}

    def named_parameters(self, remove_duplicate: bool = True) -> Any:
        return self.own.items()

    def named_modules(self) -> Any:
        return self.parts.items()


def notes(path: Path, *parts: Part, in_memory: bool = False) -> list[str]:
    module = Module(path, *parts)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", remat.RematWarning)
        remat.grad(onnx.load(path) if in_memory else path, params=module)
    return [
        str(one.message)
        for one in heard
        if any(w in str(one.message) for w in ("drops elements", "nothing is", "average"))
    ]


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_the_file_lacks_is_named(in_memory: bool) -> None:
    parts = (Dropout2d(p=0.1), MultiheadAttention(dropout=0.2), LSTM(dropout=0.1, num_layers=2))
    (said,) = notes(LOST, *parts, in_memory=in_memory)
    assert "in 3 places (part0, part1, part2), and its file in 0" in said


def test_where_another_export_would_not_help_what_does_is_said() -> None:
    (said,) = notes(LOST, RNN(dropout=0.1, num_layers=2))
    assert "make one nn.RNN for each layer, with nn.Dropout between" in said
    (said,) = notes(LOST, Dropout2d(p=0.1), RNN(dropout=0.1, num_layers=1))
    assert "export the module in training mode" in said


@pytest.mark.slow
def test_what_drops_nothing_is_not_missed() -> None:
    idle = (Dropout2d(p=0.0), Dropout2d(p=0.5, training=False), LSTM(dropout=0.5, num_layers=1))
    assert notes(LOST, *idle, MultiheadAttention(dropout=0.0)) == []
    assert notes(KEPT, *(Dropout2d(p=0.2) for _ in range(4))) == []
    assert len(notes(KEPT, *(Dropout2d(p=0.2) for _ in range(5)))) == 1


@pytest.mark.slow
def test_statistics_that_the_module_averages_are_said() -> None:
    (said,) = notes(KEPT, BatchNorm2d(momentum=None, track_running_stats=True))
    assert "statistics of part0 are no average" in said
    assert notes(KEPT, BatchNorm2d(momentum=0.1, track_running_stats=True)) == []
    assert notes(KEPT, BatchNorm2d(momentum=None, track_running_stats=False)) == []


class Sized:
    """A parameter, as far as remat asks."""

    requires_grad = True

    def __init__(self, *shape: int) -> None:
        self.shape = shape


class Held:
    """A module, as far as remat asks for its parameters."""

    def __init__(self, **parameters: Sized) -> None:
        self.parameters = parameters

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Sized]]:
        yield from self.parameters.items()


def test_the_parameters_of_another_module_are_refused() -> None:
    node = onnx.helper.make_node("Gemm", ["x", "weight"], ["y"], transB=1)
    values = [onnx.helper.make_tensor_value_info(name, 1, [4, 2]) for name in ("x", "y")]
    weight = onnx.helper.make_tensor("weight", 1, [2, 2], [1.0] * 4)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "m", values[:1], values[1:], [weight]))
    assert remat.grad(model, loss="mse", params=Held(weight=Sized(2, 2)))
    with pytest.raises(remat.BadInput, match=r"'weight' is \[3, 2\] in the module, and \[2, 2\] in the model"):
        remat.grad(model, loss="mse", params=Held(weight=Sized(3, 2)))
    with pytest.raises(remat.BadInput, match="of another module"):
        remat.grad(model, loss="mse", params=Held(kernel=Sized(2, 2)))
