"""What a refusal says of ops in pieces: only what is less than whole ops are known to need."""

from __future__ import annotations

from tests.cli.running import Command


def test_pieces_that_need_more_are_not_offered(remat: Command) -> None:
    """Walks over the pieces of this network reach 16.8 MB, where a plan of whole ops for 10.4 MB is known."""
    assert remat("zoo", "cnn", "--batch", "16", "-o", "cnn.onnx", "-q").code == 0
    assert remat("grad", "cnn.onnx", "-o", "train.onnx", "-q").code == 0
    ran = remat("solve", "train.onnx", "--budget", "30%", "--work-limit", "50k", "-o", "cnn.plan.json")
    assert ran.code == 4
    assert "try --budget" in ran.err
    assert "in pieces" not in ran.err
