"""Inputs drawn for a model that is verified: valid, so that what is compared are numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import remat_cli as remat
from profiles.strict import strict_options
from remat_cli.checking.feeds import draw_feeds
from remat_cli.ingest import ingest
from remat_cli.zoo.build import build


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_a_step_with_an_optimizer_makes_numbers(optimizer, tmp_path):
    path = tmp_path / "step.onnx"
    path.write_bytes(remat.grad(build("mlp", batch=4), optimizer=optimizer).SerializeToString())
    session = onnxruntime.InferenceSession(path, strict_options(), providers=["CPUExecutionProvider"])
    for seed in range(3):
        made = session.run(None, draw_feeds(ingest(path), seed))
        assert all(np.isfinite(value).all() for value in made)
