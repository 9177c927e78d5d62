"""The nine models that come with onnx: all differentiate, run in stock ONNX Runtime, and have finite gradients."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from remat_cli.gradient.training import Options, training_graph
from tests.sampling import few

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(path.name for path in LIGHT.glob("light_*.onnx"))
FEW = 4.5  # nodes of the training graph for each of the forward's, constants aside


@pytest.mark.parametrize("name", few(MODELS, 1))
def test_bundled_model_trains(name: str) -> None:
    model = onnx.load(LIGHT / name)
    training = training_graph(model, Options(freeze_bn=True, class_axis=1))
    onnx.checker.check_model(training)
    session = onnxruntime.InferenceSession(training.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    values = dict(zip(names, session.run(names, {value.name: _some(value) for value in session.get_inputs()})))
    assert names[0] == "loss"
    assert sum(name.endswith("_grad") for name in names) >= 16
    assert all(np.isfinite(value).all() for value in values.values())
    assert any(np.any(value) for name, value in values.items() if name.endswith("_grad"))
    assert all(tensor.type.tensor_type.HasField("shape") for tensor in training.graph.value_info)


@pytest.mark.slow
def test_densenet_stays_small() -> None:
    model = onnx.load(LIGHT / "light_densenet121.onnx")
    training = training_graph(model, Options(freeze_bn=True, class_axis=1))
    forward = sum(node.op_type != "ConstantOfShape" for node in model.graph.node)
    assert len(training.graph.node) <= FEW * forward


def _some(value: onnxruntime.NodeArg) -> np.ndarray:
    if value.type == "tensor(int64)":
        return np.zeros(value.shape, np.int64)
    reads = math.prod(value.shape[1:]) if len(value.shape) > 1 else 400  # what an output adds up: nothing saturates
    return np.random.default_rng(len(value.name)).standard_normal(value.shape, np.float32) * np.float32(reads**-0.5)
