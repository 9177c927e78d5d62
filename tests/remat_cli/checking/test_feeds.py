"""Inputs drawn for a model that is verified: valid, so that what is compared are numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import remat_cli as remat
from profiles.strict import strict_options
from remat_cli.checking.feeds import draw_feeds, nudged
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


def test_only_last_digits_are_moved() -> None:
    """Whole numbers may be scales or masks, and stay; so do integers."""
    drawn = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    moved = nudged({"drawn": drawn, "scales": np.float32([1, 2]), "places": np.arange(3)}, seed=0)
    gaps = np.abs(moved["drawn"] - drawn)
    assert moved["drawn"].dtype == np.float32
    assert gaps.max() > 0
    assert np.all(gaps <= np.spacing(np.abs(drawn)))
    assert 0 < np.count_nonzero(gaps) < len(gaps)
    assert moved["scales"].tolist() == [1, 2]
    assert moved["places"].tolist() == [0, 1, 2]
