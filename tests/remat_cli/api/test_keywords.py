"""Keywords as type checkers see them: a misspelt one is an error, and what is said of them is what there is."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

import pytest

import remat_cli as remat
from remat_cli.api.keywords import MethodOptions, OptimizerSettings, ScheduleSettings
from remat_cli.commands.methods import options_told
from remat_cli.training.rates import OWN, WARMING
from solvers.options import Orders

ROOT = Path(__file__).parents[3]
RIGHT = """
import remat_cli as remat
train = remat.grad("f.onnx", optimizer="adamw", weight_decay=0.1, groups={"*.bias": {"lr": 0.1}}, outputs=["logits"])
plan = remat.solve(train, budget="70%", method="rotor", slots=50)
step = remat.step(plan, "f.onnx", learning_rate=0.1, schedule="cosine", steps=100, warmup=10)
loss: float = step({})
found: dict[str, object] = step({}, outputs=["logits"])
most = remat.max_batch("f.onnx", budget="8GB", optimizer="sgd", learning_rate=0.1)
"""
WRONG = [
    'remat.grad("f.onnx", optmizer="sgd")',
    'remat.grad("f.onnx", optimizer="sgd", weight_dekay=0.1)',
    'remat.solve("t.onnx", budgt="70%")',
    'remat.solve("t.onnx", budget="70%", method="rotor", slot=50)',
    'remat.solve("t.onnx", budget="70%", method="rotor", slots="many")',
    'remat.step("t.onnx", "f.onnx", shedule="cosine")',
    'remat.step("t.onnx", "f.onnx", schedule="cosine", warm_up=3)',
    'remat.max_batch("f.onnx", budget="8GB", learnin_rate=0.1)',
    'remat.verify("p.plan.json", tolerance=0.1)',
]


def test_a_type_checker_catches_a_misspelt_keyword(tmp_path: Path) -> None:
    lines = [*RIGHT.strip().splitlines(), *WRONG]
    (tmp_path / "snippet.py").write_text("\n".join(lines) + "\n")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "snippet.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named mypy" in ran.stderr:
        pytest.skip("no type checker here")
    found = {int(number) for number in re.findall(r"snippet\.py:(\d+): error", ran.stdout)}
    assert found == set(range(len(lines) - len(WRONG) + 1, len(lines) + 1)), ran.stdout


def test_options_of_methods_are_those_of_their_records() -> None:
    hints: dict[str, Any] = get_type_hints(MethodOptions)
    known = {name: entry for name, (entry, _) in options_told().items() if entry.kind != Orders}
    assert set(hints) == set(known)
    for name, entry in known.items():
        kinds = set(get_args(hints[name])) - {NoneType} if NoneType in get_args(hints[name]) else {hints[name]}
        assert kinds == ({Literal[entry.choices]} if entry.choices else {entry.kind}), name  # type: ignore[valid-type]


def test_settings_of_schedules_are_theirs() -> None:
    assert set(ScheduleSettings.__annotations__) == {*WARMING, *(name for names in OWN.values() for name in names)}


@pytest.mark.parametrize("name", [name for names in remat.ROOMS.values() for name in names])
def test_docstrings_name_every_parameter_and_have_an_example(name: str) -> None:
    function = getattr(remat, name)
    says = function.__doc__
    for parameter, entry in inspect.signature(function).parameters.items():
        if entry.kind is not inspect.Parameter.VAR_KEYWORD:
            assert f"`{parameter}`" in says, parameter
    example = inspect.cleandoc(says).split("Example:\n\n")[1]
    assert f"{name}(" in example or name == "initial_state"
    ast.parse(inspect.cleandoc(example))
    if any(entry.kind is inspect.Parameter.VAR_KEYWORD for entry in inspect.signature(function).parameters.values()):
        wanted = {"grad": OptimizerSettings, "step": ScheduleSettings, "max_batch": OptimizerSettings}.get(name)
        for setting in wanted.__annotations__ if wanted else ():
            assert f"`{setting}`" in says, setting
