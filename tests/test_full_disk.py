"""A disk that is full at whatever is written first: one line, exit 3, and what was there is there still."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy

import pytest

from tests.cli.running import Command


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


COMMANDS = (
    ("zoo", "mlp", "-o", "out.onnx"),
    ("profile", "m.onnx", "--estimate", "cpu", "-o", "out.costs.yaml"),
    ("problem", "m.onnx", "-o", "out.problem.json"),
    ("solve", "linear4.problem.json", "--budget", "4", "-o", "out.plan.json"),
    ("solve", "linear4.problem.json", "--budget", "4", "-o", "/dev/null", "--certificate", "out.cert.json"),
    ("emit", "m.plan.json", "-o", "out.onnx"),
    ("show", "m.plan.json", "--plot", "out.svg"),
    ("show", "m.plan.json", "--html", "out.html"),
)


def test_every_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REMAT_RESULTS", str(tmp_path / "results"))
    remat = Command(capsys, monkeypatch)
    copy(data / "torch_mlp.onnx", "m.onnx")
    copy(data / "checkmate" / "linear4.problem.json", "linear4.problem.json")
    assert remat("solve", "m.onnx", "--budget", "100%", "-o", "m.plan.json").code == 0
    for words in COMMANDS:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with full_disk():
            ended = remat(*words)
        assert ended.code == 3, (words, ended)
        assert ended.err.splitlines()[-1].startswith("remat: cannot write out."), (words, ended)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before, words
        out = Path(next(word for word in words if word.startswith("out.")))
        assert remat(*words).code == 0
        stood = out.read_bytes()
        with full_disk():
            again = remat(*words)
        assert again.code == 3 or (again.code == 0 and "plan" in out.name), (words, again)  # the same plan stays
        assert out.read_bytes() == stood
        out.unlink()
