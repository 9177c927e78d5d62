"""The models are valid ONNX with static shapes throughout, and ONNX Runtime runs small ones of every family."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from remat_cli.errors import Usage
from remat_cli.zoo.build import build
from remat_cli.zoo.graph import PARAMETERS
from remat_cli.zoo.names import ZOO, find
from tests.sampling import few

TINY = {"layers": 2, "hidden": 32, "heads": 4, "batch": 2}
SMALL: list[tuple[str, dict[str, Any]]] = [
    ("mlp", {"batch": 2}),
    ("cnn", {"batch": 2}),
    ("rotor-toy", {"batch": 2}),
    ("vgg16", {"batch": 1, "image": 64, "hidden": 32}),
    ("fcn8", {"batch": 1, "image": 64, "hidden": 16, "classes": 5}),
    ("segnet", {"batch": 1, "image": 32}),
    ("unet", {"batch": 1, "image": 32, "width": 4}),
    ("unet", {"batch": 1, "image": 32, "width": 4, "upsample": "nearest"}),
    ("unet", {"batch": 1, "image": 48, "width": 4, "upsample": "linear"}),
    ("mobilenet-v1", {"batch": 2, "image": 64}),
    ("mobilenet-v2", {"batch": 2, "image": 64}),
    ("resnet18", {"batch": 2, "image": 64}),
    ("resnet50", {"batch": 2, "image": 64}),
    ("resnet1001", {"batch": 2, "layers": 20}),
    ("regnetx-400mf", {"batch": 1, "image": 64}),
    ("regnety-400mf", {"batch": 1, "image": (32, 64)}),
    ("vovnet39", {"batch": 1, "image": 64}),
    ("resnest50", {"batch": 1, "image": 64}),
    ("albert-base", {**TINY, "seq": 6, "vocabulary": 50, "embedding": 16}),
    ("densenet121", {"batch": 2, "image": 64}),
    ("inception-v3", {"batch": 2, "image": 96}),
    ("efficientnet-b0", {"batch": 2, "image": 64}),
    ("gpt2", {**TINY, "seq": 6, "vocabulary": 50}),
    ("bert-base", {**TINY, "seq": 6, "vocabulary": 50}),
    ("bert-base", {**TINY, "seq": 6, "vocabulary": 50, "classes": 3}),
    ("vit-b16", {**TINY, "image": 32}),
    ("llama-1b", {**TINY, "seq": 6, "vocabulary": 50}),
    ("mamba-130m", {"layers": 2, "hidden": 32, "batch": 2, "seq": 6, "vocabulary": 50}),
    ("convnext-large", {"batch": 1, "image": 32, "width": 12}),
    ("diffusion-unet", {"batch": 1, "image": 32, "width": 8}),
]


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds or feed(model))))


def feed(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    (info,) = model.graph.input
    shape = shape_of(info)
    if info.type.tensor_type.elem_type == onnx.TensorProto.INT64:
        return {info.name: random.integers(0, 50, shape)}
    return {info.name: random.standard_normal(shape, np.float32)}


def shape_of(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in info.type.tensor_type.shape.dim)


@pytest.mark.parametrize("name", ZOO)
def test_every_network_is_valid_with_static_shapes(name: str) -> None:
    model = build(name, weights="inputs", batch=2)
    onnx.checker.check_model(model, full_check=True)
    known = {info.name: shape_of(info) for info in (*model.graph.value_info, *model.graph.output)}
    written = [output for node in model.graph.node for output in node.output]
    assert all(0 not in known[value] for value in written)
    assert len({node.name for node in model.graph.node}) == len(model.graph.node)
    assert model.graph.input[0].name == "input"
    assert model.graph.output[0].name == "logits"


@pytest.mark.parametrize("name, settings", few(SMALL, 7, several=True))
def test_small_networks_run_as_declared(name: str, settings: dict[str, int | str]) -> None:
    model = build(name, weights="random", **settings)
    declared = {info.name: shape_of(info) for info in model.graph.output}
    results = run(model)
    assert {key: value.shape for key, value in results.items()} == declared
    assert all(np.isfinite(value).all() for value in results.values())
    assert results["logits"].std() > 1e-3  # the weights are neither zero nor lost


def test_every_builder_is_run_small() -> None:
    assert {ZOO[name].place for name, _ in SMALL} == {network.place for network in ZOO.values()}


def test_initial_weights_keep_the_signal_at_its_size() -> None:
    logits = run(build("vgg16", weights="random", batch=1, image=64, hidden=64))["logits"]
    assert 0.1 < logits.std() < 10


def test_weights_as_inputs_are_named_as_parameters() -> None:
    model = build("cnn", weights="inputs", batch=2)
    (listed,) = [entry.value.split() for entry in model.metadata_props if entry.key == PARAMETERS]
    assert ["input", *listed] == [info.name for info in model.graph.input]
    buffers = [tensor.name for tensor in model.graph.initializer]
    assert buffers == [f"bn{n}.running_{kind}" for n in (1, 2, 3) for kind in ("mean", "var")]


def test_both_kinds_of_weights_compute_the_same() -> None:
    random, inputs = (build("cnn", weights=kind, batch=2) for kind in ("random", "inputs"))
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in random.graph.initializer}
    wanted = {info.name for info in inputs.graph.input}
    feeds = feed(random) | {name: value for name, value in values.items() if name in wanted}
    # Not the same bits: ONNX Runtime lays out convolution weights anew where it knows them.
    np.testing.assert_allclose(run(inputs, feeds)["logits"], run(random)["logits"], rtol=1e-4, atol=1e-5)


def test_large_networks_carry_no_weights_unless_asked() -> None:
    assert build("vgg16").ByteSize() < 100_000
    assert build("resnet18", batch=1).ByteSize() > 4 * 11_689_512


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again, other = (build("mlp", seed=seed).SerializeToString(deterministic=True) for seed in (3, 3, 4))
    assert first == again != other


def test_dropout_is_there_only_when_asked_for_and_repeats_its_mask() -> None:
    assert "Dropout" not in {node.op_type for node in build("gpt2", weights="inputs", layers=1).graph.node}
    model = build("mlp", dropout=0.5, batch=2)
    seeds = [a.i for node in model.graph.node for a in node.attribute if node.op_type == "Dropout"]
    assert len(set(seeds)) == 3
    np.testing.assert_array_equal(run(model)["logits"], run(model)["logits"])


def test_inference_form_has_no_statistics_to_update() -> None:
    model = build("cnn", training=False, dropout=0.5, batch=2)
    assert [info.name for info in model.graph.output] == ["logits"]
    assert "Dropout" not in {node.op_type for node in model.graph.node}


def test_gpt2_looks_only_back() -> None:
    model = build("gpt2", weights="random", **TINY, seq=6, vocabulary=50)
    feeds = feed(model)
    before = run(model, feeds)["logits"]
    feeds["input"][:, 3] = (feeds["input"][:, 3] + 1) % 50
    changed = np.abs(run(model, feeds)["logits"] - before).max(axis=(0, 2)) > 0
    assert changed.tolist() == [False, False, False, True, True, True]


def test_the_toy_has_the_activations_of_rotors_table() -> None:
    model = build("rotor-toy", weights="inputs")
    infos = [model.graph.input[0], *model.graph.value_info, *model.graph.output]
    sizes = [4 * math.prod(shape_of(info)) / 2**20 for info in infos if "weight" not in info.name]
    activations = [round(size, 2) for size in sizes if size > 1]
    assert activations == [7.63, 9.54, 10.68, 11.06, 10.68, 9.54, 7.63]


@pytest.mark.parametrize(
    "written, meant",
    [("ViT_B16", "vit-b16"), ("mobilenet", "mobilenet-v1"), ("vgg", "vgg16"), ("bert", "bert-base"), ("gpt2", "gpt2")],
)
def test_names_are_forgiving(written: str, meant: str) -> None:
    assert find(written) is ZOO[meant]


@pytest.mark.parametrize(
    "name, settings, words",
    [
        ("vgg17", {}, "there is no network called vgg17"),
        ("r", {}, "there is no network called r"),
        ("vgg16", {"seq": 3}, "vgg16 has no --seq"),
        ("vgg16", {"depth": 19}, "vgg16 has no --depth"),
        ("vgg16", {"image": 16}, "nothing is left at features.30"),
        ("unet", {"image": 100}, "divisible by 16"),
        ("resnet1001", {"layers": 1000}, "9n \\+ 2"),
        ("gpt2", {"seq": 2000}, "1024 positions"),
        ("gpt2", {"heads": 7}, "do not divide among 7 heads"),
        ("mlp", {"batch": 0}, "at least 1"),
        ("mlp", {"opset": 9}, "--opset"),
        ("gpt2-xl", {"weights": "random"}, "--weights inputs"),
    ],
)
def test_what_cannot_be_built_is_refused(name: str, settings: dict[str, int | str], words: str) -> None:
    with pytest.raises(Usage, match=words):
        build(name, **settings)
