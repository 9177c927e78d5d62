"""Time of models in pieces: what plans foretell by costs measured here, and what runs in pairs take.

A training step is planned for 5% less than the least memory found for its whole ops, a forward model for the least
memory at up to 10% more time. Each search has SECONDS and the seed 0.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

import remat_cli as remat
from remat_cli.zoo.build import build

SECONDS = 25
STEPS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "GPT-2, 2 layers, AdamW": (
        "gpt2",
        {"layers": 2, "hidden": 256, "heads": 4, "seq": 255, "batch": 3, "vocabulary": 20011},
        {"optimizer": "adamw"},
    ),
    "U-Net 128": ("unet", {"image": 128, "batch": 2, "width": 16}, {}),
    "ViT, 3 layers": ("vit-b16", {"layers": 3, "hidden": 192, "heads": 3, "batch": 7}, {}),
}
FORWARD: dict[str, tuple[str, dict[str, Any]]] = {
    "forward: Inception v3, batch 2": ("inception-v3", {"batch": 2}),
    "forward: U-Net 256": ("unet", {"image": 256, "batch": 1}),
}


def planned(name: str, path: Path) -> remat.Planned:
    if name in FORWARD:
        network, options = FORWARD[name]
        onnx.save(build(network, training=False, **options), path)
    else:
        network, options, how = STEPS[name]
        onnx.save(remat.grad(build(network, **options), **how), path)
    given: dict[str, Any] = {"costs": remat.profile(path, time_limit=20), "cache": False, "seed": 0}
    if name in FORWARD:
        return remat.solve(path, minimize="peak", max_overhead=0.1, pieces="auto", time_limit=SECONDS, **given)
    whole = remat.solve(path, minimize="peak", time_limit=SECONDS / 2, **given)
    assert whole.recorded.promises.arena is not None
    budget = int(0.95 * whole.recorded.promises.arena)
    return remat.solve(path, budget=budget, pieces="auto", time_limit=SECONDS, **given)


def measured(name: str, path: Path) -> dict[str, Any]:
    plan = planned(name, path)
    report = remat.verify(plan, timing=20).report
    timed, process = report.timed, report.process
    assert timed is not None
    assert process is not None
    foretold, took = plan.overhead, timed.after / timed.before - 1
    return {
        "ops in pieces": plan.recorded.pieces is not None,
        "foretold": round(foretold, 3),
        "measured": round(took, 3),
        "measured over foretold": round((1 + took) / (1 + foretold), 3),
        "promised": plan.recorded.promises.arena,
        "process as given": process.before,
        "process": process.after,
        "differ": [one.output for one in process.differs],
    }


KEY = ("model",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in asked.names or [*STEPS, *FORWARD]:
            yield {"model": name, **measured(name, Path(folder) / "model.onnx")}
