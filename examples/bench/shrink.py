"""`remat shrink` on models that are only run: what the process of each way holds, how long a run takes, which bits.

    python examples/bench/shrink_models.py FOLDER        writes the models; it needs torch, transformers and diffusers
    python examples/bench/run.py shrink FOLDER/*.onnx    tries them

The models have the shapes of well-known ones and random weights, and inputs are random, by the seed 0. Bytes are beyond
what the process held before its session, loading included. `against` is the share of what is held with two options of
ONNX Runtime, or as it is where that is less.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import remat_cli as remat
from remat_cli.actions.shrinking.ways import TriedWay

KEY = ("model", "target", "way")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=120.0, help="for each model")
    parser.add_argument("--target", default="python")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for model in asked.models:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "small.onnx"
            found = remat.shrink(model, output, target=asked.target, time_limit=asked.seconds)
        choice = found.choice
        assert choice is not None
        for one in found.tried:
            yield {
                "model": model.stem,
                "target": asked.target,
                "way": one.way.name,
                **(_figures(one, found.tried[0], choice.against) if one.ran else {}),
                "recommended": one is choice.best,
                "failed": one.failed,
            }


def _figures(one: TriedWay, first: TriedWay, against: TriedWay) -> dict[str, Any]:
    return {
        "memory": one.peak,
        "loading": one.loading,
        "after": one.held,
        "ms": round(one.ns / 1e6, 2),
        "outputs": "same" if one.outputs.same else f"{one.outputs.off:.1e}",
        "against": round(one.peak / against.peak, 3),
        "slower": round(one.ns / first.ns - 1, 3),
    }
