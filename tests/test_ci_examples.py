"""The workflows in examples/ci do what they say, as far as they can be run here: in a folder with nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

CI = Path(__file__).parents[1] / "examples" / "ci"
FOREIGN = ("pip install", "gh ")  # what this machine has already, or only the forge has


def github() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CI / "github-actions.yml").read_text())["jobs"]["fleet"]
    return found


def gitlab() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CI / "gitlab-ci.yml").read_text())["remat"]
    return found


def github_lines() -> list[str]:
    return [step["run"] for step in github()["steps"] if "run" in step]


def gitlab_lines() -> list[str]:
    return [*gitlab()["script"], *gitlab()["after_script"]]


@pytest.fixture
def clean(tmp_path: Path) -> dict[str, str]:
    """A container's environment, whose `remat` is this one."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "remat"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={CI.parents[1]} exec {sys.executable} -m remat_cli "$@"\n')
    script.chmod(0o755)
    work = tmp_path / "work"
    (work / "models").mkdir(parents=True)
    shutil.copy(CI / "fleet.yaml", work)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    found = {"PATH": path, "HOME": str(tmp_path / "home"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    subprocess.run(
        ["remat", "zoo", "mlp", "--batch", "2048", "--layers", "6", "-o", "models/mlp.onnx", "-q"],
        cwd=work,
        env=found,
        check=True,
    )
    return found


def ran(lines: list[str], work: Path, environment: dict[str, str]) -> list[str]:
    """The lines that were run, each by a shell of its own, as forges do."""
    ours = [line for line in lines if not line.startswith(FOREIGN)]
    for line in ours:
        subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=work, env=environment, check=True)
    return ours


@pytest.mark.slow
def test_both_run_in_a_clean_folder(clean: dict[str, str], tmp_path: Path) -> None:
    """One after the other: the second has what the first found, where its cache says that it is kept."""
    work = tmp_path / "work"
    assert len(ran(github_lines(), work, clean)) == 3
    report = json.loads((work / "report.json").read_text())
    assert (report["failed"], report["passed"], report["cached"]) == (0, 1, 0)
    assert (tmp_path / "summary.md").read_text() == (work / "comment.md").read_text()
    (restored,) = [step["with"]["path"] for step in github()["steps"] if "actions/cache" in step.get("uses", "")]
    kept = Path(restored.replace("~", clean["HOME"]))
    assert list((kept / "results").glob("*/*"))

    project = {"CI_PROJECT_DIR": str(work)}
    (path,) = gitlab()["cache"]["paths"]
    variables = {name: value.replace("$CI_PROJECT_DIR", str(work)) for name, value in gitlab()["variables"].items()}
    shutil.copytree(kept, work / path)
    shutil.rmtree(work / "out")
    assert len(ran(gitlab_lines(), work, {**clean, **project, **variables})) == 2
    again = json.loads((work / "report.json").read_text())
    assert [job["verified"] for job in again["jobs"]] == [True]
    assert ElementTree.parse(work / gitlab()["artifacts"]["reports"]["junit"]).getroot().get("failures") == "0"


def test_what_is_kept_of_a_run_is_made_by_it() -> None:
    lines = " ".join([*github_lines(), *gitlab_lines()])
    (uploaded,) = [step["with"]["path"] for step in github()["steps"] if "upload-artifact" in step.get("uses", "")]
    for name in (*uploaded.split(), *gitlab()["artifacts"]["paths"]):
        assert name in lines or name == "out/**/log.txt"
