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
    drawn = {node.output[0] for node in training.graph.node if node.op_type == "RandomUniform"}
    masks = [node.output[0] for node in training.graph.node if drawn.intersection(node.input)]
    assert len(masks) == 4
    for name in masks:
        training.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.BOOL, None))
    found = run(training, {"x": seen["x"], "labels": seen["labels"], **_weights(forward)})
    for name in masks:
        kept = found[name]
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
    with pytest.raises(
        BadInput,
        match=r"left out the dropout of 1 attentions or recurrent layers \(attention: p=0\.1\).*optimize=False",
    ):
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


def _drawing(node: onnx.NodeProto, size: int, *stored: tuple[str, Any]) -> onnx.ModelProto:
    """The sum of what the node makes of `product` = w * x; `drawn` is an output too."""
    nodes = [
        helper.make_node("Mul", ["w", "x"], ["product"]),
        node,
        helper.make_node("Mul", ["product", "drawn"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed"], ["total"], keepdims=0),
    ]
    made = model(nodes, ["x"], [normal(size)], [("w", normal(size)), *stored], "total")
    made.graph.output.append(helper.make_tensor_value_info("drawn", onnx.TensorProto.FLOAT, [size]))
    return made


@pytest.mark.parametrize("shares", ["stored", "product"])
def test_bernoulli_gives_one_as_often_as_it_says(shares: str) -> None:
    """ONNX Runtime's kernel, and ONNX's definition, give 1 with the probability of 0."""
    made = _drawing(
        helper.make_node("Bernoulli", [shares], ["drawn"]), 3000, ("stored", np.full(3000, 0.1, np.float32))
    )
    training = remat.grad(made, loss="total", outputs=["drawn"], params=["w"])
    feeds = {"w": np.full(3000, 0.1, np.float32), "x": np.ones(3000, np.float32)}
    found = run(training, feeds)
    assert set(found["drawn"]) == {0, 1}
    assert found["drawn"].mean() == pytest.approx(0.1, abs=0.04)
    np.testing.assert_array_equal(found["w_grad"], found["drawn"])  # none of it by way of the shares


def test_draws_of_one_input_are_not_the_same() -> None:
    made = _drawing(helper.make_node("Bernoulli", ["stored"], ["drawn"]), 99, ("stored", np.full(99, 0.5, np.float32)))
    made.graph.node.insert(1, helper.make_node("Bernoulli", ["stored"], ["other"]))
    made.graph.node.insert(4, helper.make_node("Mul", ["weighed", "other"], ["both"]))
    made.graph.node[-1].input[0] = "both"
    found = run(remat.grad(made, loss="total", params=["w"]), {"w": normal(99), "x": np.ones(99, np.float32)})
    assert 10 < np.count_nonzero(found["w_grad"]) < 40


def test_no_element_of_a_small_dropout_stays_as_it_is() -> None:
    """The first one of ONNX Runtime's own is dropped, or kept, for thousands of steps."""
    ratio = ("ratio", np.float32(0.5)), ("yes", np.array(True))
    made = _drawing(helper.make_node("Dropout", ["product", "ratio", "yes"], ["drawn", "mask"]), 3, *ratio)
    step = remat.step(remat.grad(made, loss="total", outputs=["drawn"], params=["w"]), made, optimizer="sgd")
    step.learning_rate = 0.0
    kept = np.array([step([np.ones(3, np.float32)], outputs=["drawn"])["drawn"] != 0 for _ in range(60)])
    assert ((kept.mean(0) > 0.2) & (kept.mean(0) < 0.8)).all()


def test_a_dropout_of_everything_gives_zeros() -> None:
    """As PyTorch's p=1; the runtime refuses such a ratio."""
    stored = ("ratio", np.float32(1)), ("yes", np.array(True))
    made = _drawing(helper.make_node("Dropout", ["product", "ratio", "yes"], ["drawn"]), 5, *stored)
    training = remat.grad(made, loss="total", outputs=["drawn"], params=["w"])
    found = run(training, {"w": normal(5), "x": normal(5)})
    assert not found["drawn"].any()
    assert not found["w_grad"].any()
    made.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(np.float32(1.5), "ratio"))
    with pytest.raises(BadInput, match=r"its ratio is 1\.5"):
        remat.grad(made, loss="total", params=["w"])


def test_a_draw_that_the_exporter_folded_is_refused() -> None:
    """PyTorch's exporter does so to a Bernoulli of fixed shares, unless optimize=False is given."""
    made = onnx.load(FILES / "conv_train_whole.onnx")
    made.graph.value_info.add(name="bernoulli").metadata_props.add(
        key="pkg.onnxscript.optimizer.folded_from", value="['full_like']"
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1, np.float32), "bernoulli"))
    read = made.graph.output[0].name
    made.graph.node.append(helper.make_node("Mul", [read, "bernoulli"], ["dropped"]))
    made.graph.output[0].name = "dropped"
    with pytest.raises(BadInput, match=r"1 random values \(bernoulli\) to constants.*optimize=False"):
        remat.grad(made, params=["none"])


def test_a_recurrent_layer_that_lost_its_dropout_is_refused() -> None:
    given = "%x, [%h, %c], [%p_weight, %p_bias], True, 2, 0.4, True, False, True"
    node = called(helper.make_node("Tanh", ["w"], ["y"]), "lstm", given)
    node.metadata_props[0].value = node.metadata_props[0].value.replace("lstm.default", "lstm.input")
    made = model(
        [node, helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0)], [], [], [("w", normal(3))], "total"
    )
    with pytest.raises(BadInput, match=r"recurrent layers \(y: p=0\.4\)"):
        remat.grad(made, loss="total")


def test_what_an_rnn_may_have_dropped_is_said() -> None:
    """PyTorch's exporter writes its layers out, and records no dropout."""
    node = called(helper.make_node("Mul", ["w", "w"], ["y"]), "linear", "%x, %p_m_weight_ih_l1, %p_m_bias_ih_l1")
    node.metadata_props.add(key="pkg.torch.onnx.class_hierarchy", value="['N', 'torch.nn.modules.rnn.RNN', 'aten.l']")
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'm.rnn', 'linear']")
    made = model(
        [node, helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0)], [], [], [("w", normal(3))], "total"
    )
    assert "nn.RNN (m.rnn): if the module has one" in " ".join(notes_of(remat.grad(made, loss="total")))


@pytest.mark.parametrize("momentum, said", [(0.0, True), (0.9, False)])
def test_statistics_of_one_batch_are_said(momentum: float, said: bool) -> None:
    """So PyTorch's tracing exporter writes a BatchNorm of momentum=None, which averages over all batches."""
    given = ["w", "scale", "scale", "zeros", "scale"]
    node = helper.make_node(
        "BatchNormalization", given, ["y", "mean", "var"], "norm", momentum=momentum, training_mode=1
    )
    stored = [("w", normal(4, 3)), ("scale", np.ones(3, np.float32)), ("zeros", np.zeros(3, np.float32))]
    made = model([node, helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0)], [], [], stored, "total")
    notes = " ".join(notes_of(remat.grad(made, loss="total", params=["w", "scale"])))
    assert ("last batch alone (norm)" in notes) == said


def test_a_traced_file_without_training_ops_is_said_to_drop_nothing() -> None:
    made = model([helper.make_node("ReduceSum", ["w"], ["total"], keepdims=0)], [], [], [("w", normal(3))], "total")
    made.producer_name = "pytorch"
    assert "TrainingMode.PRESERVE" in " ".join(notes_of(remat.grad(made, loss="total")))
    assert "TrainingMode" not in " ".join(notes_of(remat.grad(FILES / "encoder_random_traced_whole.onnx")))


def test_a_projection_that_no_export_has_is_written_out_by_pytorch() -> None:
    """ONNX's LSTM has no projection, so another export of the layer itself would lose it too."""
    made = onnx.load(FILES / "language_train_whole.onnx")
    said = made.graph.metadata_props[0]
    assert "target='proj.weight'" in said.value
    said.value = said.value.replace("target='proj.weight'", "target='lstm.weight_hr_l0'")
    with pytest.raises(BadInput, match=r"\(lstm\.weight_hr_l0\).*run_decompositions\(\)"):
        remat.grad(made)


def test_traced_statistics_of_an_instance_norm_are_refused_with_another_export() -> None:
    given = ["w", "scale", "scale", "zeros", "scale"]
    node = helper.make_node("BatchNormalization", given, ["y", "mean", "var", "a", "b"], "norm", training_mode=1)
    made = model(
        [node, helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0)],
        [],
        [],
        [("w", normal(1, 3, 2)), ("scale", np.ones(3, np.float32)), ("zeros", np.zeros(3, np.float32))],
        "total",
    )
    with pytest.raises(BadInput, match=r"InstanceNorm.*dynamo=True"):
        remat.grad(made, loss="total")
