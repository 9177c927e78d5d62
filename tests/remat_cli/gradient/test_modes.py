"""What a module does in training mode alone, against PyTorch's own draws: no noise is lost or frozen on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import remat_cli as remat
from remat_cli.actions.differentiating import notes_of
from remat_cli.errors import BadInput
from tests.remat_cli.gradient.test_exported_forms import called, model, normal, run

FILES = Path(__file__).parents[2] / "data" / "torch"
DRAWS = 400


@pytest.mark.parametrize("way", ["whole", "traced_whole"])
@pytest.mark.parametrize("name", ["encoder", "depth"])
def test_losses_vary_as_the_modules(name: str, way: str) -> None:
    """At a learning rate of 0 steps differ by noise alone: its mean and spread are PyTorch's, over seeds."""
    forward, seen = FILES / f"{name}_random_{way}.onnx", np.load(FILES / f"{name}_random.npz")
    step = remat.step(remat.grad(forward, optimizer="sgd", learning_rate=0.0), forward)
    ours, theirs = np.array([step((seen["x"], seen["labels"])) for _ in range(DRAWS)]), seen["losses"]
    away = abs(ours.mean() - theirs.mean()) / theirs.std() * DRAWS**0.5
    assert away < 6
    assert ours.std() == pytest.approx(theirs.std(), rel=0.3)
    assert len(set(ours)) > 0.9 * min(DRAWS, len(set(np.round(theirs, 6))))


@pytest.mark.parametrize("way", ["whole", "traced_whole"])
def test_every_dropout_drops_its_share(way: str) -> None:
    forward, seen = FILES / f"encoder_random_{way}.onnx", np.load(FILES / "encoder_random.npz")
    training = remat.grad(forward)
    dropouts = [node for node in training.graph.node if node.op_type == "Dropout"]
    assert len(dropouts) == 4
    for node in dropouts:
        training.graph.output.append(helper.make_tensor_value_info(node.output[1], onnx.TensorProto.BOOL, None))
    found = run(training, {"x": seen["x"], "labels": seen["labels"], **_weights(forward)})
    for node in dropouts:
        kept = found[node.output[1]]
        assert abs(1 - kept.mean() - 0.2) < 6 * (0.2 * 0.8 / kept.size) ** 0.5
        assert 0 < kept.mean() < 1


def _weights(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def _dropout(mode: list[str], **about: Any) -> onnx.ModelProto:
    """x * w, dropped; `mode`: the third input."""
    nodes = [
        helper.make_node("Mul", ["w", "x"], ["product"]),
        helper.make_node("Dropout", ["product", "ratio", *mode], ["dropped"], name="drop"),
        helper.make_node("ReduceSum", ["dropped"], ["total"], keepdims=0),
    ]
    stored = [("w", normal(200)), ("ratio", np.float32(0.5)), ("yes", np.array(True)), ("no", np.array(False))]
    made = model(nodes, ["x"], [normal(200)], stored, "total")
    made.producer_name = about.get("producer", "")
    return made


def _dropped(made: onnx.ModelProto, **options: Any) -> tuple[float, str]:
    training = remat.grad(made, loss="total", params=["w"], **options)
    ones = np.ones(200, np.float32)
    return float((run(training, {"w": ones, "x": ones})["w_grad"] == 0).mean()), " ".join(notes_of(training))


@pytest.mark.parametrize(
    "mode, producer, train, drops, note",
    [
        ([], "pytorch", False, True, ""),  # its exporters write none for a module in eval mode
        ([], "", False, False, "inference mode (drop)"),
        ([], "", True, True, ""),
        (["yes"], "", False, True, ""),
        (["no"], "pytorch", False, False, "inference mode (drop)"),
        (["no"], "pytorch", True, True, ""),
    ],
)
def test_what_does_not_drop_is_named(mode: list[str], producer: str, train: bool, drops: bool, note: str) -> None:
    share, notes = _dropped(_dropout(mode, producer=producer), train=train)
    assert share == pytest.approx(0.5 if drops else 0, abs=0.2 if drops else 0)
    assert note in notes
    assert ("--train" in notes) == (not drops)


def test_a_dropout_beside_one_that_trains_trains() -> None:
    made = _dropout([])
    other = helper.make_node("Dropout", ["w", "ratio", "yes"], ["v"], name="other")
    made.graph.node.insert(0, other)
    made.graph.node[1].input[0] = "v"
    share, notes = _dropped(made)
    assert share == pytest.approx(0.75, abs=0.15)
    assert "1 Dropouts have no training_mode (drop)" in notes


def test_an_attention_that_lost_its_dropout_is_refused() -> None:
    """PyTorch's exporter by default takes such a Dropout for inert and leaves it out."""
    nodes = [
        called(
            helper.make_node("Softmax", ["w"], ["attention"]), "scaled_dot_product_attention", "%q, %k, %v, None, 0.1"
        ),
        helper.make_node("ReduceSum", ["attention"], ["total"], keepdims=0),
    ]
    made = model(nodes, [], [], [("w", normal(4, 3))], "total")
    with pytest.raises(BadInput, match=r"left out the dropout of 1 attentions \(attention: p=0\.1\).*optimize=False"):
        remat.grad(made, loss="total")
    assert "nothing is dropped" in " ".join(notes_of(remat.grad(made, loss="total", as_exported=True)))


def test_noise_of_a_known_size_is_drawn_in_each_step() -> None:
    nodes = [
        helper.make_node("RandomUniformLike", ["zeros"], ["noise"], name="noise"),
        helper.make_node("Mul", ["w", "noise"], ["product"]),
        helper.make_node("ReduceSum", ["product"], ["total"], keepdims=0),
    ]
    made = model(nodes, [], [], [("w", normal(64)), ("zeros", np.zeros(64, np.float32))], "total")
    step = remat.step(remat.grad(made, loss="total", params=["w"], optimizer="sgd", learning_rate=0.0), made)
    assert len({step(()) for _ in range(5)}) == 5


def test_statistics_that_the_exporter_left_out_are_named() -> None:
    call = "%x, %p_w, %p_b, %b_mean, %b_var, True, 0.1, 1e-05, False"
    norm = helper.make_node("InstanceNormalization", ["x", "w", "b"], ["y"], name="norm")
    nodes = [called(norm, "instance_norm", call), helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0)]
    stored = [("w", normal(3)), ("b", normal(3))]
    notes = notes_of(remat.grad(model(nodes, ["x"], [normal(2, 3, 4)], stored, "total"), loss="total"))
    assert any("running statistics of InstanceNorm (norm)" in note for note in notes)
