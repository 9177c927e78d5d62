"""Ctrl-C and SIGTERM in processes of their own: exit code 130 whenever they come, and the best plan kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from remat_cli.formats import planfile
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
    _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (130, "remat: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_it_searches_the_best_plan_is_kept(number: int, tmp_path: Path, data: Path) -> None:
    model, plan = data / "networks" / "unet.problem.json", tmp_path / "x.plan.json"
    process = begun("solve", model, "--budget", "50%", "-v", "-o", plan)
    assert process.stderr is not None
    while "plan +" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said.endswith("remat: interrupted\n")
    assert planfile.read(plan).status == "feasible"


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
