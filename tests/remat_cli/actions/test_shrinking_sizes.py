"""`shrink` for several sizes: one file that runs all of them, each judged against the model as it is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import remat_cli as remat
from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.actions.shrinking.shrink import Shrinking
from remat_cli.actions.shrinking.sizes import wrong_at
from remat_cli.actions.shrinking.ways import LEAN, Outputs, TriedWay
from solvers.clock import Clock
from tests.remat_cli.actions.test_shrinking import tower


def free_tower(folder: Path) -> Path:
    """Convolutions of images of any number and size."""
    model = tower(batch="batch", opset=11)
    for axis, name in ((2, "height"), (3, "width")):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


SIZES = {"batch": 1, "height": 512, "width": 512}


@pytest.mark.slow
def test_one_file_runs_every_size(tmp_path: Path) -> None:
    also = ({"height": 64, "width": 96}, {"batch": 2, "height": 128})
    found = remat.shrink(free_tower(tmp_path), dims=SIZES, also=also, max_slower=9.0, time_limit=300, cache=False)
    assert len(found.others) == 6
    assert all(one.ran and one.outputs.near for one in found.others)
    assert found.choice is not None
    assert found.choice.best.way.written
    session = remat.session(found.files[-1])
    stock = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    for size in ((1, 8, 512, 512), (1, 8, 64, 96), (2, 8, 128, 512), (3, 8, 40, 40)):
        x = np.random.default_rng(0).random(size, np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], stock.run(None, {"x": x})[0], rtol=1e-4)


def test_a_size_of_no_dimension_is_refused_before_anything_runs(tmp_path: Path) -> None:
    asked = ShrinkQuestion(dims=SIZES, also=({"hight": 64},))
    with pytest.raises(remat.Usage, match="did you mean height"):
        Shrinking(free_tower(tmp_path), tmp_path / "small.onnx", tmp_path, asked, Clock(300)).run()


def test_a_way_that_is_wrong_at_another_size_says_where() -> None:
    row = TriedWay(LEAN, ns=1)
    assert wrong_at(row, {"h": 2}) == ""
    assert wrong_at(TriedWay(LEAN, failed="why"), {"h": 2, "w": 3}) == "at h=2, w=3: why"
    assert "at h=2" in wrong_at(TriedWay(LEAN, outputs=Outputs(False, False)), {"h": 2})
