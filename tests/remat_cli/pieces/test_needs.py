"""The budget of a plan that was made for none covers all that it promises."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx

from remat_cli.actions.questions import Question
from remat_cli.actions.solving import ask
from remat_cli.planning.kinds import target_of
from remat_cli.planning.loading import load_subject
from remat_cli.planning.targets.candidate import Footprint
from remat_cli.zoo.build import build
from solvers.clock import limited
from solvers.problem import Limits


def test_live_bytes_beyond_the_block_are_in_the_budget(tmp_path: Path) -> None:
    """Constants that writing adds are live, though they are in no order and in no place."""
    onnx.save(build("unet", training=False, image=32, width=4, batch=1), tmp_path / "m.onnx")
    limits = Limits(clock=limited(moves=20_000))
    found = ask(load_subject(tmp_path / "m.onnx", None, {}), Question(minimize="peak"), limits)
    assert found.promise is not None
    more = found.budget + 8
    wider = Footprint(replace(found.promise, live=more))
    assert replace(found, candidate=replace(found.candidate, footprint=wider)).held == more
    assert found.held == found.budget
    assert found.session is not None
    counted = target_of(found.session).counted
    assert counted(found.promise) <= found.budget < counted(replace(found.promise, live=more)), "a given one too"
