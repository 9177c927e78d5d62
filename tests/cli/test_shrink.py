"""`remat shrink`: what it refuses before anything is run, and what it prints."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.cli.running import Command
from tests.remat_cli.actions.test_shrinking import tower


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(tower(opset=11), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_what_cannot_be_done_is_one_line(remat: Command, model: Path) -> None:
    onnx.save(tower(batch="batch"), "free.onnx")
    Path("notes.txt").write_text("my own")
    Path("n.onnx.data").write_text("another's weights")
    for words, code, says in (
        (("m.onnx", "--for", "java"), 2, "'java' is not one of"),
        (("free.onnx",), 3, "--dim batch=N"),
        (("none.onnx",), 3, "cannot read none.onnx"),
        (("m.onnx", "--feeds", "none.npz"), 3, "cannot read the feeds"),
        (("m.onnx", "-o", "notes.txt"), 3, "is in the way"),
        (("m.onnx", "-o", "n.onnx"), 3, "n.onnx.data is in the way"),
        (("m.onnx", "-o", "m.onnx"), 2, "would be lost"),
        (("m.onnx", "-o", "nowhere/n.onnx"), 3, "nowhere"),
    ):
        ran = remat("shrink", *words)
        assert ran.code == code, (words, ran)
        assert says in ran.err, (words, ran)
        assert len(ran.err.splitlines()) == 1
        assert not ran.out
    assert not list(Path().glob(".remat*"))


@pytest.mark.slow
def test_the_object_says_what_the_table_says(remat: Command, model: Path) -> None:
    asked = ("shrink", "m.onnx", "--time-limit", "2m", "--work-limit", "50K", "--max-slower", "10000%")
    ran = remat(*asked, "--json")
    assert ran.code == 0, ran
    said = ran.object
    rows = {row["way"]: row for row in said["rows"]}
    best, against = rows[said["recommended"]["way"]], rows[said["recommended"]["against"]]
    assert against["way"] in ("as it is", "arena and pattern off")
    assert said["recommended"]["saved"] == pytest.approx(1 - best["memory"] / against["memory"])
    assert all(Path(file).is_file() for file in said["recommended"]["files"])
    assert best["memory"] == min(row["memory"] for row in said["rows"] if row["memory"])
    ran = remat(*asked)
    assert [line.split("  ")[0] for line in ran.out.splitlines()[1:3]] == ["as it is", "arena and pattern off"]
    assert "recommended: " in ran.out
