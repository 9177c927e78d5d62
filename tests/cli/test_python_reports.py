"""What a program's `report` raises comes out of the call, and ends it early."""

from __future__ import annotations

from pathlib import Path

import pytest

import remat_cli


def test_what_a_report_raises_ends_the_search(data: Path) -> None:
    def broken(_: object) -> None:
        raise LookupError("of the program")

    model = data / "networks" / "unet.problem.json"
    with pytest.raises(LookupError, match="of the program"):
        remat_cli.solve(model, budget="50%", time_limit=3600, gap=0, cache=False, report=broken)


def test_what_a_report_raises_ends_a_verification(data: Path) -> None:
    said = list[str]()

    def broken(words: str) -> None:
        said.append(words)
        raise LookupError("of the program")

    plan = remat_cli.solve(data / "torch_cnn.onnx", budget="80%", work_limit=1000, cache=False)
    with pytest.raises(LookupError, match="of the program"):
        remat_cli.verify(plan, report=broken)
    assert [words.partition(":")[0] for words in said] == ["run 1 of 6"]
