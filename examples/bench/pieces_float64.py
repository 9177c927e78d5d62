"""Gradients of small training steps in pieces, and whole, against a run in float64.

Each step has its widest values cut, into quarters if its weights are not wider still, sums of weight gradients among
them. A row tells the output that comes out worst: its error in pieces beside its error whole. The seed is 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import remat_cli as remat
from profiles.strict import strict_options
from remat_cli.checking.exactness import ROUNDING, run_in_float64
from remat_cli.ingest import graph_of
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.pieces.finding import narrowed_to
from remat_cli.zoo.build import build

PARTS = 4
SEED = 0
ZERO = 1e-12  # of the largest norm: what is less is 0 but for float64's own rounding, as of a key's bias
TEXT = {"layers": 1, "hidden": 32, "heads": 2, "seq": 33, "batch": 3}
IMAGE = {"image": 32, "batch": 3, "classes": 10}
HEAVY = {"parts": 64}  # where weights are wider than what is between ops
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "MLP": ("mlp", {"batch": 2001}),
    "CNN": ("cnn", {"batch": 7}),
    "VGG-16": ("vgg16", IMAGE | HEAVY),
    "MobileNet v1": ("mobilenet-v1", IMAGE | HEAVY),
    "MobileNet v2": ("mobilenet-v2", IMAGE),
    "ResNet-18": ("resnet18", IMAGE | HEAVY),
    "ResNet-50": ("resnet50", IMAGE),
    "DenseNet-121": ("densenet121", IMAGE | HEAVY),
    "EfficientNet-B0": ("efficientnet-b0", IMAGE),
    "VoVNet-39": ("vovnet39", IMAGE | HEAVY),
    "ConvNeXt": ("convnext-large", IMAGE | {"width": 16}),
    "U-Net": ("unet", {"image": 48, "batch": 3, "width": 8}),
    "U-Net, transposed": ("unet", {"image": 48, "batch": 3, "width": 8, "upsample": "transposed"}),
    "SegNet": ("segnet", {"image": 32, "batch": 3} | HEAVY),
    "GPT-2": ("gpt2", TEXT | {"vocabulary": 1501}),
    "BERT": ("bert-base", TEXT | {"vocabulary": 1501}),
    "ALBERT": ("albert-base", TEXT | {"vocabulary": 1501}),
    "ViT": ("vit-b16", {"layers": 2, "hidden": 32, "heads": 2, "image": 64, "batch": 3, "classes": 10}),
    "Llama": ("llama-1b", {"layers": 1, "hidden": 32, "heads": 4, "seq": 33, "batch": 3, "vocabulary": 1501}),
    "Mamba": ("mamba-130m", {"layers": 1, "hidden": 32, "seq": 33, "batch": 3, "vocabulary": 1501}),
}


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> dict[str, np.ndarray]:
    options = strict_options()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def compared(network: str, options: dict[str, Any]) -> dict[str, Any]:
    """How far both are from float64, by the norm of each output."""
    parts = options.pop("parts", PARTS)
    graph = graph_of(remat.grad(build(network, weights="inputs", seed=SEED, **options)), Path("step.onnx"))
    inner = (name for op in graph.ops for name in op.writes if name not in graph.outputs)
    widest = max(graph.values[name].bytes for name in inner)
    found = narrowed_to(graph, widest // parts)
    feeds = dict(feeds_of(graph, ops_of(graph), SEED))
    right = run_in_float64(graph, feeds)
    if right is None:
        return {"none": "float64's reference does not run it"}
    whole, pieces = run(graph.model, feeds), run(found.made.graph.model, feeds)
    norms = {name: float(np.linalg.norm(value)) for name, value in right.items() if value.dtype == np.float64}
    errors, least = {}, ZERO * max(norms.values())
    for name, norm in norms.items():
        value = right[name]
        if least < norm < np.inf:
            errors[name] = tuple(float(np.linalg.norm(one[name] - value)) / norm for one in (whole, pieces))
    worst = max(errors, key=lambda name: errors[name][1] / (errors[name][0] + ROUNDING))
    over = {name: pair for name, pair in errors.items() if pair[1] > 2 * pair[0] + ROUNDING}
    return {
        "parts of the widest value": parts,
        "ops": len(graph.ops),
        "ops in pieces": len(set(found.made.origin.values())),
        "pieces": len(found.made.origin),
        "outputs": len(errors),
        "worst": worst,
        "error whole": float(f"{errors[worst][0]:.3g}"),
        "error in pieces": float(f"{errors[worst][1]:.3g}"),
        "largest error whole": float(f"{max(pair[0] for pair in errors.values()):.3g}"),
        "largest error in pieces": float(f"{max(pair[1] for pair in errors.values()):.3g}"),
        "more than twice as far off": sorted(over),
    }


KEY = ("model",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name, (network, options) in MODELS.items():
        if not asked.names or name in asked.names:
            yield {"model": name, **compared(network, dict(options))}
