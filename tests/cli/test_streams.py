"""Where streams of the command are closed, lead to who has had enough, or its folder is gone: one line, or none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REMAT = f"exec {sys.executable} -m remat_cli"


def run(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_leads_nowhere(closed: str, data: Path, tmp_path: Path) -> None:
    """Also not into the file that is opened next."""
    shutil.copy(data / "torch_mlp.onnx", tmp_path / "m.onnx")
    assert run(f"{REMAT} problem m.onnx -o usual.json", tmp_path).returncode == 0
    ran = run(f"{REMAT} problem m.onnx -o m.json {closed}", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr
    assert (tmp_path / "m.json").read_text() == (tmp_path / "usual.json").read_text()


def test_an_error_that_nobody_reads_is_told_in_one_line(tmp_path: Path) -> None:
    ran = run(f"set -o pipefail; (({REMAT} show none.onnx --json); echo code $? >&2) | true", tmp_path)
    assert ran.stderr.splitlines() == ["remat: none.onnx: there is no such file", "code 3"]


def test_a_working_directory_that_is_gone_is_named(data: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    model = data / "torch_mlp.onnx"
    ran = run(f"cd gone; rmdir ../gone; PYTHONPATH={Path.cwd()} {REMAT} problem {model} -o m.json", tmp_path)
    assert ran.returncode == 3
    assert ran.stderr.splitlines() == ["remat: cannot find the working directory: No such file or directory"]
