"""Gradients of a first step in float16: `grad --precision` beside PyTorch's autocast, both held to float64.

Needs torch. For each module of `examples/pytorch` with few classes: the error of each parameter's gradient (its norm
over the exact one's), as the median and the largest over parameters. `rounded`: our graph by ONNX's reference, which
rounds every float16 value as a GPU would; `session`: by onnxruntime on a CPU, which puts Casts around ops and so rounds
little. Parameters whose exact gradient is nothing, as a bias's before a BatchNorm, are left out. The seed is 0.
"""

from __future__ import annotations

import argparse
import copy
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn
from torch.nn import functional

import remat_cli as remat

sys.path.insert(0, str(Path(__file__).parents[1] / "pytorch"))
from models import EXAMPLES

SCALE = 65536.0
NOTHING = 1e-9  # a norm below it is rounding
Gradients = dict[str, np.ndarray]


def by_pytorch(module: nn.Module, x: Tensor, labels: Tensor, kind: torch.dtype) -> Gradients:
    """In float64 as it is, in float16 by autocast, its loss scaled."""
    module, narrow = copy.deepcopy(module), kind is torch.float16
    scale = SCALE if narrow else 1.0
    with torch.autocast("cpu", dtype=torch.float16, enabled=narrow):
        logits = module(x) if narrow else module.double()(x.double())
        loss = functional.cross_entropy(logits.float() if narrow else logits, labels)
    (loss * scale).backward()
    return {
        name: value.grad.double().numpy() / scale for name, value in module.named_parameters() if value.grad is not None
    }


def ours(module: nn.Module, x: Tensor, labels: Tensor) -> dict[str, Gradients]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "m.onnx")
        torch.onnx.export(copy.deepcopy(module), (x,), path, dynamo=True, optimize=False, verbose=False)
        training = remat.grad(path, precision="float16")
    feeds = {
        **remat.initial_state(module.state_dict(), training),
        "labels": labels.numpy(),
        "loss_scale": np.array(SCALE, np.float32),
    }
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(training.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (data,) = [entry.name for entry in session.get_inputs() if entry.name not in feeds]
    feeds[data] = x.numpy()
    names = [output.name for output in session.get_outputs()]
    ways = {"session": session.run(names, feeds), "rounded": ReferenceEvaluator(training).run(names, feeds)}
    return {way: dict(zip(names, found, strict=True)) for way, found in ways.items()}


def error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - exact) / np.linalg.norm(exact))


KEY = ("module",)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    warnings.filterwarnings("ignore")
    for name in ("cnn", "resnet", "vit"):
        torch.manual_seed(0)
        module = EXAMPLES[name].make().train()
        x, labels = EXAMPLES[name].batch()
        exact = by_pytorch(module, x, labels, torch.float64)
        trained = [key for key, value in exact.items() if np.linalg.norm(value) > NOTHING]
        found = {way: {key: value[f"{key}_grad"] for key in trained} for way, value in ours(module, x, labels).items()}
        found["autocast"] = by_pytorch(module, x, labels, torch.float16)
        errors = {way: [error(value[key], exact[key]) for key in trained] for way, value in found.items()}
        yield {
            "module": name,
            **{way: {"median": float(np.median(each)), "largest": max(each)} for way, each in errors.items()},
        }
