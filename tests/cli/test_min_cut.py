"""`--method min-cut`: without a budget, by traffic, and what show and emit say of fusion groups."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest

from tests.cli.running import Command


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(data / "torch_cnn.onnx", tmp_path / "m.onnx"))


def test_needs_no_budget(remat: Command, model: Path) -> None:
    """What it recomputes moves fewer bytes if ops are fused, and more if they are not."""
    ran = remat("solve", model, "--method", "min-cut", "--json", "-o", "m.plan.json")
    assert ran.code == 0
    assert ran.object["recomputed"] > 0
    assert ran.object["peak"] <= ran.object["budget"]
    traffic = remat("show", "m.plan.json", "--json").object["traffic"]
    moved = {
        name: [sum(side[way] for way in ("read", "written")) for side in (both["before"], both["after"])]
        for name, both in traffic.items()
    }
    assert moved["fused"][0] > moved["fused"][1]
    assert moved["unfused"][0] < moved["unfused"][1]
    assert "bytes read and written" in remat("show", "m.plan.json").out


def test_other_methods_need_one(remat: Command, model: Path) -> None:
    ran = remat("solve", model, "--method", "evict")
    assert ran.code == 2
    assert "--budget" in ran.err


def moved(remat: Command, *options: str) -> int:
    ran = remat("solve", "m.onnx", "--method", "min-cut", *options, "--json", "-o", "m.plan.json")
    assert ran.code == 0
    after = remat("show", "m.plan.json", "--json").object["traffic"]["fused"]["after"]
    return int(after["read"] + after["written"])


def test_objectives(remat: Command, model: Path) -> None:
    """Time alone recomputes nothing where all fits; traffic does; and between groups there may be more to gain."""
    peak = remat("solve", model, "--method", "checkpoint-all", "--budget", "200%", "--json").object["peak"]
    by_time = moved(remat, "--budget", "200%")
    by_traffic = moved(remat, "--budget", "200%", "--objective", "traffic")
    between = moved(remat, "--budget", "200%", "--between-groups")
    assert by_time > by_traffic >= between
    assert peak > 0


def test_what_onnxruntime_does_not_fuse_is_no_gain(remat: Command, model: Path) -> None:
    ran = remat("solve", model, "--method", "min-cut", "--objective", "traffic", "--fusion", "runtime", "--json")
    assert ran.object["recomputed"] == 0


def test_options_of_its_own(remat: Command, model: Path) -> None:
    ran = remat("solve", model, "--method", "evict", "--budget", "100%", "--objective", "traffic")
    assert ran.code == 2
    assert "--objective" in ran.err


def test_groups_as_functions(remat: Command, model: Path) -> None:
    remat("solve", model, "--method", "min-cut", "-o", "m.plan.json")
    ran = remat("emit", "m.plan.json", "--groups", "functions", "--json")
    assert ran.code == 0
    written = onnx.load(ran.object["model"])
    assert len(written.functions) == ran.object["functions"] > 0
    assert any("not promised" in note for note in ran.object["notes"])
    assert not onnx.load(remat("emit", "m.plan.json", "--json").object["model"]).functions
