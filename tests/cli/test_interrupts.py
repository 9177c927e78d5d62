"""Ctrl-C and SIGTERM in processes of their own: exit code 130 whenever they come, and the best plan kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from remat_cli.formats import planfile
from remat_cli.main import COMMANDS
from tests.cli.running import Command


def begun(*args: object, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "remat_cli", *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **environment})


@pytest.mark.parametrize(
    "module, args, number",
    [
        ("click", ["--help"], signal.SIGINT),
        ("click", ["--help"], signal.SIGTERM),
        ("onnx", ["profile", "m.onnx"], signal.SIGINT),
        ("numpy", ["emit", "m.plan.json"], signal.SIGTERM),
        ("onnx", ["verify", "m.plan.json"], signal.SIGTERM),
        ("numpy", ["solve", "m.onnx", "--budget", "50%"], signal.SIGINT),
        ("numpy", ["solve", "m.onnx", "--budget", "50%", "--json"], signal.SIGINT),
    ],
)
def test_while_a_module_is_imported(
    module: str, args: list[str], number: int, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module sends the signal itself, and makes an error of its own of what comes of that, as numpy's does."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(data / "torch_cnn.onnx", "m.onnx")
    sent = f"os.kill(os.getpid(), {int(number)})\n    for _ in range(1000): pass"
    text = f"import os\ntry:\n    {sent}\nexcept BaseException as error:\n    raise ImportError from error\n"
    Path("shadows").mkdir()
    Path("shadows", f"{module}.py").write_text(text)
    process = begun(*args, PYTHONPATH="shadows")
    out, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (130, "remat: interrupted\n")
    assert [json.loads(line)["error"]["code"] for line in out.splitlines()] == [130] * ("--json" in args)


ENDLESS = ("--budget", "50%", "--gap", "0%", "--time-limit", "1h")  # of the U-Net: nobody proves it meanwhile


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_it_searches_the_best_plan_is_kept(number: int, tmp_path: Path, data: Path) -> None:
    model, plan = data / "networks" / "unet.problem.json", tmp_path / "x.plan.json"
    process = begun("solve", model, *ENDLESS, "-v", "-o", plan)
    assert process.stderr is not None
    while "plan +" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said.endswith("remat: interrupted\n")
    assert planfile.read(plan).status == "feasible"


def said_once(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What an interrupted command says as JSON."""
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said.endswith("remat: interrupted\n")
    found: dict[str, Any] = json.loads(out)  # one object, and nothing else
    assert found.pop("error") == {"code": 130, "kind": "interrupted", "says": "interrupted"}
    return found


def test_one_object_says_the_plan_and_that_the_search_was_ended(tmp_path: Path, data: Path) -> None:
    model = data / "networks" / "unet.problem.json"
    process = begun("solve", model, *ENDLESS, "-v", "--json", "-o", tmp_path / "x.plan.json")
    assert process.stderr is not None
    while "plan +" not in process.stderr.readline():
        assert process.poll() is None
    found = said_once(process)
    assert (found["status"], found["stopped"]) == ("feasible", "interrupt")


def test_one_object_says_the_curve_and_that_it_was_ended(tmp_path: Path, data: Path) -> None:
    """The signal comes when the first of nine points is known, on a fast machine as on a slow one."""
    model, results = data / "networks" / "unet.problem.json", tmp_path / "results"
    asked = ("--budgets", "40%..90%/9", "--json", "-o", tmp_path / "plans")
    process = begun("sweep", model, *asked, REMAT_RESULTS=str(results))
    while not list(results.glob("*/*.json")):
        assert process.poll() is None
        time.sleep(0.001)
    assert len(said_once(process)["points"]) == 9


AFTER_THE_ANSWER = """
import signal, sys

class Out:
    def __init__(self, stdout):
        self.stdout, self.sent = stdout, False

    def __getattr__(self, name):
        return getattr(self.stdout, name)

    def write(self, text):
        self.stdout.write(text)
        self.stdout.flush()
        if "{" in text and not self.sent:
            self.sent = True
            signal.raise_signal(signal.SIGINT)

sys.stdout = Out(sys.stdout)
from remat_cli.start import main
main()
"""
ANSWERS = {  # in this order: later ones read what earlier ones wrote
    "zoo": "zoo cnn --free-batch -o net.onnx",
    "list of networks": "zoo --list",
    "grad": "grad net.onnx --batch 1 -o step.onnx",
    "estimate": "profile m.onnx --estimate h100 -o other.costs.yaml",
    "dry run": "profile m.onnx --dry-run",
    "problem": "problem m.onnx",
    "solve": "solve m.onnx --budget 80% --method evict -o m.plan.json --certificate m.cert.json",
    "methods": "solve --list",
    "every method": "solve m.problem.json --budget 100% --method all --time-limit 1s",
    "relaxation": "solve m.problem.json --budget 100% --lp",
    "no plan": "solve m.onnx --budget 1KB",
    "emit": "emit m.plan.json",
    "verify": "verify m.plan.json",
    "check": "check m.cert.json m.plan.json",
    "show": "show m.plan.json",
    "bars": "show m.plan.json --breakdown",
    "places": "places m.onnx",
    "sweep": "sweep m.onnx --budgets 90% --methods evict",
    "max-batch": "max-batch net.onnx --budget 8MB --estimate h100 --time-limit 2m",
    "shrink": "shrink m.onnx --time-limit 2m",
    "batch": "batch jobs.yaml",
    "cache": "cache list",
    "check of the cache": "cache check",
    "pruning": "cache prune",
}


def prints_one_object(words: str) -> bool:
    """Whether Ctrl-C just after its answer lets the command end with 130, and with what it had printed."""
    command = [sys.executable, "-c", AFTER_THE_ANSWER, *words.split(), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert isinstance(json.loads(ran.stdout), dict)  # one object, and nothing else
    return (ran.returncode, ran.stderr.splitlines()[-1]) == (130, "remat: interrupted")


@pytest.mark.parametrize("words", [ANSWERS["list of networks"], ANSWERS["methods"], "emit none.plan.json"])
def test_ctrl_c_just_after_the_answer(words: str) -> None:
    assert prints_one_object(words)


@pytest.mark.slow
def test_ctrl_c_just_after_the_answer_of_every_command(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(data / "torch_cnn.onnx", "m.onnx")
    Path("jobs.yaml").write_text("models: [m.onnx]\nbudgets: [90%]\nmethods: [evict]\n")
    assert {words.split()[0] for words in ANSWERS.values()} == set(COMMANDS)
    assert [name for name, words in ANSWERS.items() if not prints_one_object(words)] == []


def test_what_it_started_ends_with_it(remat: Command, data: Path, tmp_path: Path) -> None:
    shutil.copy(data / "torch_cnn.onnx", "m.onnx")
    assert remat("solve", "m.onnx", "--budget", "80%", "--method", "evict", "-q", "-o", "m.plan.json").code == 0
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = begun("verify", "m.plan.json", TMPDIR=str(scratch))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (child := children.read_text().split()):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=600)
    assert (process.returncode, said.split("\n")[-2]) == (130, "remat: interrupted")
    until = time.monotonic() + 600
    while Path("/proc", child[0]).exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path("/proc", child[0]).exists()
    assert [
        left.name for left in scratch.iterdir() if left.name != ".ses"
    ] == []  # which onnxruntime leaves, if it loads
