"""Every rule against central differences of the forward op, which ONNX's reference evaluates in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from remat_cli.gradient.parameters import Choice
from remat_cli.gradient.prepare import Binding
from remat_cli.gradient.rules import RULES
from remat_cli.gradient.rules.pointwise import STOPS
from remat_cli.gradient.training import Options, training_graph
from tests.remat_cli.gradient.row import Row, as_model, is_float
from tests.remat_cli.gradient.rows import ROWS

onnxruntime.set_default_logger_severity(3)
STEP = 1e-5


def test_every_rule_has_a_row() -> None:
    elsewhere = {*STOPS.split(), "mse", "Dropout"}
    assert set(RULES) - elsewhere <= {row.rule or row.op for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_gradient_agrees_with_central_differences(row: Row) -> None:
    trained = [f"in{k}" for k, x in enumerate(row.inputs) if is_float(x) and k not in row.fixed]
    found = _gradients(as_model(row, np.float32), trained, row)
    loss = _forward(row)
    values = {f"in{k}": np.asarray(x) for k, x in enumerate(row.inputs) if f"in{k}" in trained}
    directions = np.random.default_rng(3)
    for name in trained:
        for _ in range(2):
            direction = directions.standard_normal(values[name].shape)
            ends = [loss({**values, name: values[name] + s * STEP * direction}) for s in (1, -1)]
            expected = (ends[0] - ends[1]) / (2 * STEP)
            scale = np.abs(found[name]).sum() + 1e-3
            assert abs(np.sum(found[name] * direction) - expected) < 2e-5 * scale, name


def _forward(row: Row) -> Callable[[dict[str, np.ndarray]], float]:
    """The loss in float64."""
    if row.forward is not None:
        return lambda values: np.sin(row.forward(*values.values())).sum()
    evaluator = ReferenceEvaluator(as_model(row, np.float64))
    return lambda values: evaluator.run(None, values)[0]


def _gradients(model: onnx.ModelProto, trained: Sequence[str], row: Row) -> dict[str, np.ndarray]:
    training = training_graph(
        model, Options(loss="loss", choice=Choice(wrt=trained), binding=Binding(), freeze_bn=True)
    )
    onnx.checker.check_model(training, full_check=True)
    session = onnxruntime.InferenceSession(training.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {f"in{k}": np.asarray(x, np.float32) for k, x in enumerate(row.inputs) if f"in{k}" in trained}
    names = [f"{name}_grad" for name in trained]
    return dict(zip(trained, session.run(names, feed)))
