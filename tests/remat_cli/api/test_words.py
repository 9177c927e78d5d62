"""What a program gets wrong is answered in words, and what it prints takes a line."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import remat_cli as remat
from profiles.cuda import NoCuda
from remat_cli.units import show_bytes

DATA = Path(__file__).parents[2] / "data"
CNN, FORWARD = DATA / "torch_cnn.onnx", DATA / "torch" / "language_train_whole.onnx"


class _Module:
    def named_parameters(self) -> list[object]:
        return []


def test_what_is_no_model_or_plan_is_named() -> None:
    with pytest.raises(remat.Usage, match=r"torch\.onnx\.export\(module"):
        remat.grad(_Module())
    with pytest.raises(remat.Usage, match="not int"):
        remat.solve(3, budget="80%")
    with pytest.raises(remat.Usage, match="a plan is what solve gives"):
        remat.emit(_Module())
    with pytest.raises(remat.Usage, match="a step is of a plan or a training graph"):
        remat.step(_Module(), FORWARD)
    with pytest.raises(remat.Usage, match="no level 'most'"):
        remat.verify("none.plan.json", level="most")
    with pytest.raises(remat.Usage, match="soon"):
        remat.solve(CNN, budget="80%", time_limit="soon")


def test_a_plan_and_a_curve_take_a_line() -> None:
    plan = remat.solve(CNN, budget="90%", method="evict", work_limit=100_000)
    assert copy.deepcopy([plan]) == [plan]
    with pytest.raises(remat.Usage, match=r"plan\.save"):
        pickle.dumps(plan)
    assert repr(plan).startswith("<plan of torch_cnn.onnx: status ")
    assert len(repr(plan)) < 200
    assert f"peak {show_bytes(plan.peak)}" in repr(plan)
    costs = remat.profile(CNN, estimate="v100")
    assert repr(costs).startswith("<costs of torch_cnn.onnx: ")
    assert len(repr(costs)) < 200
    curve = remat.sweep(CNN, budgets="100%,90%", methods=("evict",), work_limit=100_000)
    assert repr(curve).startswith("<curve of torch_cnn.onnx: 2 plans at 2 points")
    assert len(repr(curve)) < 200
    assert curve._repr_html_().count("<tr>") == 3


def test_what_the_runtime_refuses_in_a_step_is_ours_with_the_op() -> None:
    step = remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD)
    before = step.state_dict()
    with pytest.raises(remat.BadInput, match=r"the op \w+ '.*' failed on this batch"):
        step((np.full((2, 6), 999), np.zeros((2, 6), int)))
    assert all((value == before[name]).all() for name, value in step.state_dict().items())
    with pytest.raises(remat.BadInput, match="drop_last=True"):
        step((np.zeros((1, 6), int), np.zeros((1, 6), int)))


def test_a_session_that_cannot_be_made_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Because a kernel is missing, or a device."""
    with pytest.raises(remat.BadInput, match=r"cannot make a session of the model: Could not find an implementation"):
        remat.step(remat.grad(FORWARD, precision="bfloat16", optimizer="sgd"), FORWARD)

    def lacks(*_: object) -> None:
        raise NoCuda("what is missing: the NVIDIA driver")

    monkeypatch.setattr("profiles.cuda.session", lacks)
    with pytest.raises(remat.Usage, match="the NVIDIA driver"):
        remat.step(remat.grad(FORWARD, optimizer="sgd"), FORWARD)


@pytest.mark.parametrize("name", ["solvers", "profiles"])
@pytest.mark.parametrize("how", [["script.py"], ["-m", "remat_cli", "solve", "m.onnx", "--budget", "50%"]], ids=str)
def test_a_module_of_the_users_that_stands_in_the_way_is_named(tmp_path: Path, name: str, how: list[str]) -> None:
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('this is not run')\n")
    (tmp_path / "script.py").write_text("import remat_cli as remat\nremat.solve\n")
    root = str(Path(remat.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *how],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == (3 if "-m" in how else 1)
    assert "not run" not in done.stderr
    assert f"{name}.py stands in the way of remat's own package '{name}': rename it" in done.stderr
