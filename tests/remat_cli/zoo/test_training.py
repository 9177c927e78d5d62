"""Every network of the zoo can be trained: its gradients exist, and the small ones' say how the loss really moves.

The witness is the loss itself: along the gradient's direction it must change by the gradient's length, whatever the
rules are. Nothing here knows them.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from remat_cli.gradient.training import Options, training_graph
from remat_cli.zoo.build import build, describe
from tests.sampling import few

from .test_models import SMALL, TINY, shape_of

MOVED: list[tuple[str, dict[str, int | str]]] = [
    ("cnn", {"batch": 2}),
    ("unet", {"batch": 1, "image": 32, "width": 4}),
    ("unet", {"batch": 1, "image": 32, "width": 4, "upsample": "nearest"}),
    ("unet", {"batch": 1, "image": 48, "width": 4, "upsample": "linear"}),
    ("segnet", {"batch": 1, "image": 32}),
    ("mobilenet-v2", {"batch": 2, "image": 64}),
    ("efficientnet-b0", {"batch": 2, "image": 64}),
    ("resnet1001", {"batch": 2, "layers": 20}),
    ("gpt2", {**TINY, "seq": 6, "vocabulary": 50}),
    ("bert-base", {**TINY, "seq": 6, "vocabulary": 50}),
    ("bert-base", {**TINY, "seq": 6, "vocabulary": 50, "classes": 3}),
    ("vit-b16", {**TINY, "image": 32}),
    ("llama-1b", {**TINY, "seq": 6, "vocabulary": 50}),
    ("mamba-130m", {"layers": 2, "hidden": 32, "batch": 2, "seq": 6, "vocabulary": 50}),
    ("convnext-large", {"batch": 1, "image": 32, "width": 12}),
    ("diffusion-unet", {"batch": 1, "image": 32, "width": 8}),
]


@pytest.mark.parametrize("name, settings", few(SMALL, 13, several=True))
def test_every_weight_gets_a_gradient_and_every_statistic_an_update(name: str, settings: dict[str, int | str]) -> None:
    model = training_graph(build(name, weights="inputs", **settings), Options())
    net, _ = describe(name, **settings)
    trained = {f"{key}_grad": weight.shape for key, weight in net.weights.items() if not weight.buffer}
    updated = {f"{key}_new": weight.shape for key, weight in net.weights.items() if weight.buffer}
    assert {info.name: shape_of(info) for info in model.graph.output} == {"loss": (), **trained, **updated}


@pytest.mark.parametrize("name, settings", few(MOVED, 3, several=True))
def test_the_loss_moves_as_the_gradient_says(name: str, settings: dict[str, int | str]) -> None:
    forward = build(name, weights="random", **settings)
    model = training_graph(forward, Options())
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = feed(session, forward)
    results = dict(zip([output.name for output in session.get_outputs()], session.run(None, feeds)))
    gradients = {key.removesuffix("_grad"): g.astype(np.float64) for key, g in results.items() if key.endswith("_grad")}
    length = np.sqrt(sum((g**2).sum() for g in gradients.values()))

    def loss_at(step: float) -> float:
        moved = {key: (feeds[key] + step / length * g).astype(np.float32) for key, g in gradients.items()}
        return float(session.run(["loss"], feeds | moved)[0])

    steps = [change / length for change in (1e-2, 1e-3)]  # one may cross a kink, the other drown in rounding
    slopes = [(loss_at(step) - loss_at(-step)) / (2 * step) for step in steps]
    assert min(abs(slope / length - 1) for slope in slopes) < 0.08, [slope / length for slope in slopes]


def feed(session: onnxruntime.InferenceSession, forward: onnx.ModelProto) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    feeds = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in forward.graph.initializer}
    feeds = {info.name: feeds[info.name] for info in session.get_inputs() if info.name in feeds}
    for info in session.get_inputs():
        if info.name == "labels":
            feeds["labels"] = random.integers(0, 2, info.shape, np.int64)
        elif info.name == "input":
            ids = "int" in info.type
            feeds["input"] = (
                random.integers(0, 50, info.shape) if ids else random.standard_normal(info.shape, np.float32)
            )
    return feeds
