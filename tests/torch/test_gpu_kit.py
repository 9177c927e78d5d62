"""What the GPU kit asks of torch, small and on a CPU: no part of it breaks off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.test_gpu_evidence import gathered

PARTS = ("dropout", "inductor/llama", "inductor/gpt2", "torch batch", "where")
PARTS += ("trained/resnet50", "pytorch/resnet50", "pytorch/unet")


@pytest.mark.slow
def test_its_parts_in_torch_run_on_a_cpu(tmp_path: Path) -> None:
    language = ("gpt2", "bert") if has_transformers() else ()
    parts = [*PARTS, *(f"{part}/{name}" for name in language for part in ("trained", "pytorch"))]
    given = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "REMAT_RESULTS": str(tmp_path / "results")}
    given |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    found = gathered(tmp_path, given, "--device", "cpu", "--minutes", "60", "--only", *parts)
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
    for name in ("resnet50", *language):
        ways = found[f"trained/{name}"]
        assert ways["eager, itself"]["differ_from_eager"] == 0
        for way in ("remat, 70%", "remat, 50%"):
            assert ways[way]["worst_from_eager"] < 1e-5
            assert ways[way]["graphs"][0]["predicted"] is not None
    assert all(found[f"pytorch/{name}"]["checkpoint"]["ms"] for name in ("resnet50", "unet", *language))


def has_transformers() -> bool:
    """Whether it can be imported: it fails where torchvision is without its compiled part."""
    try:
        from transformers import BertForMaskedLM, GPT2LMHeadModel  # noqa: F401
    except ImportError:
        return False
    return True
