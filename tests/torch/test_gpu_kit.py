"""What the GPU kit asks of torch, small and on a CPU: no part of it breaks off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.test_gpu_evidence import gathered

PARTS = ("dropout", "inductor/llama", "inductor/gpt2", "torch batch", "where")


@pytest.mark.slow
def test_its_parts_in_torch_run_on_a_cpu(tmp_path: Path) -> None:
    given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "REMAT_RESULTS": str(tmp_path / "results")}
    given |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    found = gathered(tmp_path, given, "--device", "cpu", "--minutes", "60", "--only", *PARTS)
    assert found["dropout"]["torch, 1.0"]["places"] == 0
    assert found["dropout"]["remat, 60%"]["places"] == found["dropout"]["remat, 40%"]["places"] == 0
    for name in ("llama", "gpt2"):
        ways = found[f"inductor/{name}"]
        assert not [way for way, said in ways.items() if "failed" in said]
        (graph,) = ways["remat, 60%"]["graphs"]
        assert graph["predicted"] is not None, graph["why"]
        off = {way: said["gradients_off"]["median"] for way, said in ways.items()}
        assert off["remat, 60%"] <= 1.1 * off["torch, 1.0"]
        assert found["torch batch/llama"]["remat, 60%"]["batch"]
    assert found["where/gpt2"]["eager"]["ops"]
