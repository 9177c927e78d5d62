"""Other outputs of a step: those of the model itself, as the runtime computes them from the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import remat_cli as remat
from tests.cli.running import Command
from tests.remat_cli.training.test_optimizers import batches
from tests.sampling import few

FORWARD = Path(__file__).parents[2] / "data" / "torch" / "language_train_whole.onnx"


def logits_of(weights: dict[str, Any], ids: np.ndarray) -> np.ndarray:
    """The forward model's, with these weights in it."""
    model = onnx.load(FORWARD)
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(onnx.numpy_helper.from_array(weights[tensor.name], tensor.name))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: ids})[0])


def name_of_logits() -> str:
    return onnx.load(FORWARD).graph.output[0].name


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("planned", few([True, False], 1), ids=["plan", "model"])
def test_a_step_gives_the_models_own_outputs_of_the_weights_before_the_update(inside: bool, planned: bool) -> None:
    name = name_of_logits()
    options: dict[str, Any] = {"learning_rate": 0.1} if inside else {"optimizer": "adamw", "learning_rate": 0.1}
    model = remat.grad(FORWARD, optimizer="adamw" if inside else "none", outputs=[name])
    given = remat.solve(model, budget="90%", work_limit=10_000, cache=False) if planned else model
    if planned:
        assert name in [output.name for output in remat.emit(given).graph.output]
    step, plain = remat.step(given, FORWARD, **options), remat.step(model, FORWARD, **options)
    assert name in step.outputs
    held = []
    for batch in batches():
        before = {key: value.copy() for key, value in step.state_dict().items()}
        found = step(batch, outputs=[name])
        assert found["loss"] == plain(batch)
        np.testing.assert_allclose(found[name], logits_of(before, batch[0]), rtol=1e-4, atol=1e-5)
        held.append((found[name], found[name].copy()))
    assert all((first == kept).all() for first, kept in held)


def test_gradients_are_outputs_and_stay_as_they_were() -> None:
    step = remat.step(remat.grad(FORWARD), FORWARD, optimizer="sgd", learning_rate=0.5)
    before = step.state_dict()["lnf.bias"].copy()
    found = step(next(batches()), outputs="lnf.bias_grad")
    np.testing.assert_allclose(step.state_dict()["lnf.bias"], before - 0.5 * found["lnf.bias_grad"], rtol=1e-6)


def test_an_output_that_there_is_not_is_answered_with_the_nearest() -> None:
    name = name_of_logits()
    step = remat.step(remat.grad(FORWARD, optimizer="sgd", outputs=[name]), FORWARD)
    before = step.state_dict()
    with pytest.raises(remat.Usage, match=f"did you mean {name}"):
        step(next(batches()), outputs=[f"{name}s"])
    assert step.calls == 0
    assert all((value == before[key]).all() for key, value in step.state_dict().items())
    bare = remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD)
    with pytest.raises(remat.Usage, match=r"it gives the loss alone .*outputs=\['logits'\]"):
        bare(next(batches()), outputs=["logits"])
    with pytest.raises(remat.BadInput, match="the model has no output 'logit'"):
        remat.grad(FORWARD, outputs=["logit"])


def test_the_command_keeps_outputs_too(remat: Command) -> None:
    name = name_of_logits()
    told = remat("grad", FORWARD, "--outputs", name, "-o", "t.onnx", "--json").object
    assert name in told["outputs"]
    said = remat("grad", FORWARD, "--outputs", f"loss,{name}x", "-o", "u.onnx")
    assert (said.code, "the model has no output" in said.err) == (3, True)
    assert not Path("u.onnx").exists()
