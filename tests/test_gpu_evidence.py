"""The script that gathers evidence on a GPU, small: on a CPU, and on a device that has memory and no arithmetic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cuda.device import build, environment

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "gpu" / "evidence.py"
IN_ONNX = ("costs", "plans", "memory", "session", "steps", "batch", "allocators", "profile", "ops")


def gathered(folder: Path, given: dict[str, str], *arguments: str) -> dict[str, Any]:
    """What the script found, by part; all of it must have been found."""
    places = ["--out", folder / "out", "--work", folder / "work"]
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--small", *places, *arguments], env=given, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    evidence = json.loads((folder / "out" / "evidence.json").read_text())
    said = (folder / "out" / "evidence.md").read_text()
    assert all(key in said for key in evidence["results"])
    broken = {key: entry for key, entry in evidence["results"].items() if entry["status"] != "done"}
    assert not broken, broken
    return {
        key: {k: v for found in entry["found"] for k, v in found.items()} for key, entry in evidence["results"].items()
    }


@pytest.mark.slow
def test_it_runs_on_a_cpu_and_goes_on_where_it_was(tmp_path: Path) -> None:
    given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": ""}
    found = gathered(tmp_path, given, "--device", "cpu")
    assert found["session/unet"]["exact"]["rewritten"]["differ"] == 0
    assert found["session/unet"]["rewritten"]["order_kept"]
    assert found["memory/unet/90"]["off"]["live"] == 0
    assert "90%, planned" in found["steps/unet"]
    assert found["batch/unet"]["plan, x1.1"]["ran"]
    written = (tmp_path / "out" / "evidence.json").stat().st_mtime_ns
    assert gathered(tmp_path, given, "--device", "cpu") == found
    assert (tmp_path / "out" / "evidence.json").stat().st_mtime_ns == written


@pytest.mark.slow
def test_every_part_in_onnx_runs_on_a_cpu(tmp_path: Path) -> None:
    """For each network what a plan said is what is held, and the bits are the original's."""
    given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": ""}
    found = gathered(tmp_path, given, "--device", "cpu", "--minutes", "60", "--only", *IN_ONNX)
    for name in ("gpt2", "resnet50", "unet", "bert"):
        assert found[f"memory/{name}/90"]["off"]["live"] == 0
        assert found[f"memory/{name}/90"]["same_bytes"]
        assert found[f"session/{name}"]["exact"]["rewritten"]["differ"] == 0
        assert found[f"session/{name}"]["rewritten"]["order_kept"]
        assert "90%, planned" in found[f"steps/{name}"]
    assert found["batch/gpt2"]["plan, x1.1"]["ran"]
    wrong = {kind: said for kind, said in found["ops/in place"].items() if said["table"] and not said["in_place"]}
    assert not wrong


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler, and so no device")
def test_what_it_says_of_cuda_on_a_device_that_is_memory_only(tmp_path: Path) -> None:
    given = environment(build(tmp_path / "device"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    found = gathered(tmp_path, given, "--device", "cuda", "--only", "machine", "ops/in", "session/unet", "memory/unet")
    assert found["machine"]["device"]["provider"] == "CUDAExecutionProvider"
    wrong = {kind: said for kind, said in found["ops/in place"].items() if said["table"] and not said["in_place"]}
    assert not wrong
    for model in ("original", "rewritten"):
        ran = found["session/unet"][model]
        assert (ran["order_kept"], ran["elsewhere"], ran["copies"]) == (True, {}, 0)
        assert ran["kernels"] == ran["nodes"]
    memory = found["memory/unet/90"]
    small = 1000  # shapes and the like, which the runtime keeps on the host
    assert 0 <= memory["predicted"]["live"] - memory["live"]["after"] < small
    assert abs(memory["process"]["after"] - memory["predicted"]["process"]) < small
    assert memory["process"]["stray"] == memory["over_budget"] == 0
    assert memory["live"]["after"] < memory["live"]["before"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler, and so no device")
def test_every_part_in_onnx_runs_on_a_device_that_is_memory_only(tmp_path: Path) -> None:
    """The small profile ends before it measured what ResNet-50, which alone has convolutions, works in: its bytes are
    not asked."""
    given = environment(build(tmp_path / "device"), XDG_CACHE_HOME=str(tmp_path / "cache"))
    found = gathered(tmp_path, given, "--device", "cuda", "--minutes", "60", "--only", "machine", *IN_ONNX)
    for name in ("gpt2", "resnet50", "unet", "bert"):
        assert found[f"session/{name}"]["rewritten"]["order_kept"]
        assert "90%, planned" in found[f"steps/{name}"]
    for name in ("gpt2", "unet", "bert"):
        memory = found[f"memory/{name}/90"]
        assert 0 <= memory["predicted"]["live"] - memory["live"]["after"] < 1000
        assert memory["over_budget"] == 0


@pytest.mark.parametrize("script", ["install.sh", "prepare.sh"])
def test_the_scripts_of_the_kit_can_be_read(script: str) -> None:
    subprocess.run(["sh", "-n", SCRIPT.parent / script], check=True)
