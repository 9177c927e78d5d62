"""A question asked as a user would, in a folder of its own, and what of the answer is recorded."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from remat_cli.main import main
from tests.cli.test_max_batch import perceptron
from tests.recorded.questions import KIND, PERCEPTRON, Question
from tests.remat_cli.kinds import model

DATA = Path(__file__).parents[1] / "data"
PASSING = {
    "notes",
    "error",  # in words too
    "seconds",
    "wall_seconds",
    "plan",
    "log",
    "model",
    "why",
    "report",
    "processor",
    "phases",
    "versions",
    "found_by",  # who found it
    "bound_by",
    "parts",
}
PASSING_LINES = (' "asked": ', ' "notes": ', ' "model": ', ' "costs": ', ' "limits": ')  # of a plan file
CHAIN = """{"format": "remat-chain/1", "fw": [1600, 2200, 2440, 2510, 2100, 1430],
 "bw": [3050, 4480, 5090, 4930, 4210, 3340, 0], "a": [763, 954, 1068, 1106, 1068, 954, 763],
 "abar": [763, 954, 1068, 1108, 1066, 954, 763], "o_f": [0, 0, 0, 0, 0, 0],
 "o_b": [2001, 2764, 3099, 3099, 2764, 1908, 0]}"""
MANIFEST = """format: remat-batch/1
defaults: {session: strict, time-limit: 10m}
models: [m.onnx]
budgets: [90%, 60%]
methods: [evict, chen-greedy]
"""


def answered(question: Question, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What of the answer is recorded; and its notes, whose words may change."""
    name = _place(question, folder)
    with _within(folder):
        if question.first:
            _run("solve", name, "-o", "first.plan.json", *question.first)
        if question.beside:
            shutil.copy("first.plan.json", "other.plan.json")
        subject = () if question.command == "batch" else (name,)
        place = ("-o", f"{name.partition('.')[0]}.plan.json") if question.command == "solve" else ()
        code, out = _run(question.command, *subject, *place, *question.flags, "--json")
        plans = sorted(path for path in Path().rglob("*.plan.json") if path.name not in ("first.plan.json",))
        files = {str(path): _hash(_lasting(path)) for path in plans if path.name != "other.plan.json"}
    said = json.loads(out) if out.strip() else {}
    figures = {key: said.get(key) for key in ("status", "cost", "peak", "arena", "made_by") if key in said}
    return {"code": code, **figures, "plans": files, "fields": _hash(json.dumps(_without(said)))}, said.get("notes", [])


def _place(question: Question, folder: Path) -> str:
    """Put the model there, with its costs; its name."""
    if question.command == "batch":
        (folder / "manifest.yaml").write_text(MANIFEST)
    if question.model.endswith(".json"):
        name = Path(question.model).name
        if name.endswith(".chain.json"):
            (folder / name).write_text(CHAIN)
        else:
            shutil.copy(DATA / question.model, folder / name)
        return name
    if question.model.startswith(KIND):
        (folder / "m.onnx").write_bytes(model(question.model.removeprefix(KIND)).SerializeToString())
    elif question.model == PERCEPTRON:
        perceptron(folder / "m.onnx")
    else:
        shutil.copy(DATA / f"{question.model}.onnx", folder / "m.onnx")
    if question.totals is not None:
        with _within(folder):
            _run("profile", "m.onnx", "--estimate", "cpu", "-q")
        path = folder / "m.costs.yaml"
        costs = yaml.safe_load(path.read_text())
        costs["totals"] |= question.totals
        path.write_text(yaml.safe_dump(costs))
    return "m.onnx"


def _run(*args: str) -> tuple[int, str]:
    out = io.StringIO()
    with patch.object(sys, "argv", ["remat", *args]), redirect_stdout(out), redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), out.getvalue()
    raise AssertionError


@contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _lasting(path: Path) -> str:
    """The plan file but for words, and for hashes of files that other versions of onnx may spell otherwise."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(PASSING_LINES))


def _without(said: Any) -> Any:
    if isinstance(said, dict):
        return {key: _without(value) for key, value in said.items() if key not in PASSING}
    return [_without(value) for value in said] if isinstance(said, list) else said


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
