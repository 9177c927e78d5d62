"""Dropout of masked attention over thousands of draws, against its exact moments.

The loss is linear in what is kept, so that its mean, variance and fourth moment over draws are known: each of the
products q_i contributes c_i * kept_i / (1 - p), with kept_i of Bernoulli(1 - p). Both statistics are nearly normal, and
a bound of 4.9 deviations is passed by chance in one of a million draws of seeds; the seed is fixed besides.

onnxruntime seeds each run with the number after the last, and its generator's first number is linear in that: the first
element of a Dropout hardly changes in thousands of runs. So the first element contributes nothing here.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import remat_cli as remat
from tests.remat_cli.gradient.test_exported_forms import model
from tests.sampling import few

DRAWS, DEVIATIONS = 4000, 4.9
HEADS, TOKENS, WIDTH, RATIO = 2, 6, 4, 0.3


def arrays() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    made = {name: random.standard_normal((HEADS, TOKENS, WIDTH)).astype(np.float32) for name in ("q", "k", "v", "way")}
    made["way"][0, 0] = 0  # see above; the mask leaves this row one weight
    made["mask"] = np.where(np.tril(np.ones((TOKENS, TOKENS))) > 0, 0, -np.inf).astype(np.float32)
    return made


def contributions() -> np.ndarray:
    """What each kept weight adds to the loss, without dropout."""
    given = {name: array.astype(np.float64) for name, array in arrays().items()}
    scores = given["q"] @ given["k"].transpose(0, 2, 1) + given["mask"]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights * (given["way"] @ given["v"].transpose(0, 2, 1))


@pytest.mark.parametrize("stated", few([True, False], 1), ids=["training_mode", "as PyTorch exports it"])
def test_masked_attention_drops_with_the_right_moments(stated: bool) -> None:
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("Dropout", ["weights", "ratio", *(["yes"] if stated else [])], ["kept"], name="drop"),
        helper.make_node("MatMul", ["kept", "v"], ["attended"]),
        helper.make_node("Mul", ["attended", "way"], ["product"]),
        helper.make_node("ReduceSum", ["product"], ["total"], keepdims=0),
    ]
    stored = [*arrays().items(), ("ratio", np.float32(RATIO)), ("yes", np.array(True))]
    forward = model(nodes, [], [], stored, "total")
    forward.producer_name = "pytorch"
    onnxruntime.set_seed(20_240_501)
    training = remat.grad(forward, loss="total", params=["q", "k", "v"], optimizer="sgd", learning_rate=0.0)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in forward.graph.initializer}
    step = remat.step(training, values)
    losses = np.array([step(()) for _ in range(DRAWS)])
    each, keep = contributions().reshape(-1) / (1 - RATIO), 1 - RATIO
    variance = (each**2).sum() * keep * RATIO
    fourth = 3 * variance**2 + (each**4).sum() * keep * RATIO * (1 - 6 * keep * RATIO)
    assert abs(losses.mean() - each.sum() * keep) < DEVIATIONS * (variance / DRAWS) ** 0.5
    assert abs(losses.var() - variance) < DEVIATIONS * ((fourth - variance**2) / DRAWS) ** 0.5
    assert len(np.unique(losses)) > 0.99 * DRAWS
