"""What `solve` says to whom: a short table and a sentence of proof, and all figures to whom asks with -v."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import Command

WORK = ("--work-limit", "2k", "--seed", "1")


def rows(out: str) -> list[str]:
    """What the rows of the first table are called."""
    return [line[:28].split("  ")[0] for line in out.splitlines() if not line.startswith(("note", "wrote"))]


def test_the_short_answer_needs_no_glossary(data: Path, remat: Command, tmp_path: Path) -> None:
    model, plan = data / "torch_cnn.onnx", tmp_path / "short.plan.json"
    ran = remat("solve", model, "--budget", "90%", "-o", plan, *WORK)
    assert ran.code == 0, ran.err
    names = rows(ran.out)
    assert names[1:3] == ["memory of the step", "held by the process"]
    assert names[-3:-1] == ["time of the step", "ops computed again"]
    assert len(names) < 8
    assert "without remat" in ran.out.splitlines()[0]
    proof = [line for line in ran.out.splitlines() if line.startswith(("Proved: at most ", "Nothing is proved"))]
    assert len(proof) == 1
    assert not any(word in ran.out for word in ("feasible", "optimal", "fixed (inputs"))


def test_the_long_answer_has_what_the_memory_is_made_of(data: Path, remat: Command, tmp_path: Path) -> None:
    ran = remat("solve", data / "torch_cnn.onnx", "--budget", "90%", "-v", "-o", tmp_path / "v.plan.json", *WORK)
    assert "  fixed (inputs, weights)" in ran.out
    assert any(line.startswith(("optimal", "feasible")) for line in ran.out.splitlines())


def test_least_memory_is_not_said_to_be_fast(data: Path, remat: Command, tmp_path: Path) -> None:
    model = data / "torch_cnn.onnx"
    ran = remat("solve", model, "--minimize", "peak", "-o", tmp_path / "least.plan.json", *WORK)
    assert ran.code == 0, ran.err
    assert any(
        line.startswith(("Proved: no plan holds less", "Not proved to be the least")) for line in ran.out.splitlines()
    )
    assert "slower than" not in ran.out
