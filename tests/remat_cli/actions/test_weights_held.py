"""Files of a plan that lets go of weights, and the same with weights held: both run, and give the same bits."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from remat_cli.actions.pieces_asked import OFF
from remat_cli.actions.shrinking import plans
from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.actions.shrinking.preparing import fused, prepare
from remat_cli.checking.metered import MeteredProcess
from remat_cli.formats import placesfile, planfile
from solvers.clock import Clock, limited
from solvers.problem import Limits
from tests.remat_cli.actions.test_shrinking import tower


@pytest.mark.slow
@pytest.mark.parametrize("target", ["python", "c"])
def test_held_weights_are_the_same_weights(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "kept_of", lambda model, folder: 4096)
    path = tmp_path / "m.onnx"
    onnx.save(tower(opset=11), path)
    ready = prepare(path, ShrinkQuestion(), tmp_path)
    assert ready.graph is not None
    subject = plans.unmeasured(fused(path, ready.graph, tmp_path, layouts=False), ready.feeds)
    found = plans.planned(subject, plans.Wanted(OFF), Limits(limited(moves=1000)), None)
    assert found is not None
    made = plans.write_files(found, tmp_path / "made" / "s.onnx", target, ready.feeds, Limits(Clock(300)))
    held = plans.hold_weights(made, tmp_path / "held")
    assert (made.lets_go, held.lets_go) == (True, False)
    opened = [one.files[-1] for one in (made, held)]
    if target == "c":
        assert [placesfile.read(file).weights is None for file in opened] == [False, True]
    else:
        assert [planfile.read(file).placement.weights for file in opened] == [4096, None]
    with np.load(ready.feeds) as feeds:
        right = onnxruntime.InferenceSession(str(path)).run(None, dict(feeds))
    moved = tmp_path / "elsewhere"
    for one in (made, held):
        shutil.move(one.files[0].parent, moved)
        model = moved / one.run.model.name
        with MeteredProcess(replace(one.run, model=model), ready.feeds, Clock(300)) as program:
            program.make()
            for _ in range(2):
                program.run()
            program.keep(tmp_path / "out.npz")
        with np.load(tmp_path / "out.npz") as out:
            for name, whole in zip(out.files, right, strict=True):
                np.testing.assert_allclose(out[name], whole, rtol=1e-4, atol=1e-5)
        shutil.rmtree(moved)
