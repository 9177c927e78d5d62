"""Ops in pieces: least peaks of training steps, GPT-2 small below its floor, and what forward models' processes hold.

Training steps are planned by costs from paper for a CPU. Forward models run here, in the stock session of onnxruntime
and by their plan. Each search has SECONDS and the seed 0.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import remat_cli as remat
from remat_cli.zoo.build import build

SECONDS = 40
GPT2 = {"layers": 12, "hidden": 768, "heads": 12, "seq": 512, "batch": 8, "vocabulary": 50257}
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "VGG-19, batch 16": ("vgg19", {"batch": 16}),
    "U-Net 256, batch 4": ("unet", {"batch": 4, "image": 256}),
    "SegNet, batch 2": ("segnet", {"batch": 2}),
    "DenseNet-121, batch 16": ("densenet121", {"batch": 16}),
    "BERT base, batch 16 x 384": ("bert-base", {"batch": 16, "seq": 384}),
    "ViT-B/16, batch 32": ("vit-b16", {"batch": 32}),
}
FORWARD: dict[str, Callable[[], onnx.ModelProto]] = {
    "U-Net 512": lambda: build("unet", training=False, image=512, batch=1),
    "DenseNet-121, batch 8": lambda: build("densenet121", training=False, batch=8),
    "EfficientNet-B0, batch 8": lambda: build("efficientnet-b0", training=False, batch=8),
    "Inception v3, batch 4": lambda: build("inception-v3", training=False, batch=4),
    "super-resolution to 1024 x 1024": lambda: super_resolution(),
    "VAE decoder to 1024 x 1024": lambda: vae_decoder(),
}


class Net:
    """A chain of ops with random weights."""

    def __init__(self, shape: list[int]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(0)
        self.input = helper.make_tensor_value_info("input", onnx.TensorProto.FLOAT, shape)

    def add(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def weight(self, array: np.ndarray) -> str:
        self.stored.append(numpy_helper.from_array(array, f"weight{len(self.stored)}"))
        return self.stored[-1].name

    def conv(self, value: str, inside: int, outside: int, size: int = 3) -> str:
        scale = 1 / np.sqrt(inside * size * size)
        kernel = self.weight((scale * self.random.standard_normal((outside, inside, size, size))).astype(np.float32))
        return self.add("Conv", [value, kernel], kernel_shape=[size, size], pads=[size // 2] * 4)

    def norm(self, value: str, channels: int, groups: int = 8) -> str:
        """GroupNorm, as PyTorch's exporter writes it."""
        one, zero = (self.weight(np.full(groups, number, np.float32)) for number in (1, 0))
        scale, bias = (self.weight(self.random.standard_normal((channels, 1, 1)).astype(np.float32)) for _ in "sb")
        joined = self.add("Reshape", [value, self.weight(np.array([0, groups, -1], np.int64))])
        even = self.add("InstanceNormalization", [joined, one, zero], epsilon=1e-6)
        apart = self.add("Reshape", [even, self.add("Shape", [value])])
        return self.add("Add", [self.add("Mul", [apart, scale]), bias])

    def swish(self, value: str) -> str:
        return self.add("Mul", [value, self.add("Sigmoid", [value])])

    def residual(self, value: str, channels: int) -> str:
        inner = self.conv(self.swish(self.norm(value, channels)), channels, channels)
        inner = self.conv(self.swish(self.norm(inner, channels)), channels, channels)
        return self.add("Add", [value, inner])

    def attention(self, value: str, channels: int, side: int) -> str:
        """Each place of the image looks at all."""
        flat = self.weight(np.array([1, channels, side * side], np.int64))
        normed = self.norm(value, channels)
        query, key, held = (self.add("Reshape", [self.conv(normed, channels, channels, 1), flat]) for _ in "qkv")
        rows = self.add("Transpose", [query], perm=[0, 2, 1])
        scale = self.weight(np.array(channels**-0.5, np.float32))
        scores = self.add("MatMul", [self.add("Mul", [rows, scale]), key])
        seen = self.add(
            "MatMul", [self.add("Softmax", [scores], axis=-1), self.add("Transpose", [held], perm=[0, 2, 1])]
        )
        shape = self.weight(np.array([1, channels, side, side], np.int64))
        image = self.add("Reshape", [self.add("Transpose", [seen], perm=[0, 2, 1]), shape])
        return self.add("Add", [value, self.conv(image, channels, channels, 1)])

    def model(self, output: str) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "net", [self.input], [onnx.ValueInfoProto(name=output)], self.stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def super_resolution() -> onnx.ModelProto:
    """Four residual blocks of 32 channels, and twice as many pixels a side."""
    net = Net([1, 3, 512, 512])
    value = first = net.conv("input", 3, 32)
    for _ in range(4):
        inner = net.conv(net.add("Relu", [net.conv(value, 32, 32)]), 32, 32)
        value = net.add("Add", [value, inner])
    value = net.add("Add", [net.conv(value, 32, 32), first])
    wide = net.add("DepthToSpace", [net.conv(value, 32, 128)], blocksize=2, mode="CRD")
    return net.model(net.conv(wide, 32, 3))


def vae_decoder() -> onnx.ModelProto:
    """As of Stable Diffusion, with an eighth of its channels: attention in the middle, three times twice as many pixels
    a side, GroupNorm and SiLU."""
    net = Net([1, 4, 128, 128])
    value, channels = net.conv("input", 4, 64), 64
    value = net.residual(net.attention(net.residual(value, channels), channels, 128), channels)
    scales = net.weight(np.array([1, 1, 2, 2], np.float32))
    how = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    for wanted in (64, 32, 16):
        value = net.residual(net.residual(value, channels), channels)
        value = net.add("Resize", [value, "", scales], **how)
        value, channels = net.conv(value, channels, wanted), wanted
    return net.model(net.conv(net.swish(net.norm(net.residual(value, channels), channels)), channels, 3))


def solved(model: Path, **asked: Any) -> tuple[remat.Planned | None, str]:
    """The plan, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return remat.solve(model, time_limit=SECONDS, cache=False, seed=0, **asked), ""
        except (remat.Infeasible, remat.NoPlan) as error:
            return None, str(error)


def least_peaks(path: Path) -> dict[str, Any]:
    """The least memory with whole ops and in pieces, and what pieces cost where whole ops end."""
    found: dict[str, Any] = {}
    for how in ("off", "auto"):
        plan, why = solved(path, minimize="peak", pieces=how)
        found[how] = why if plan is None else plan.recorded.promises.arena
        found[f"{how}, overhead"] = None if plan is None else round(plan.overhead, 3)
    if isinstance(found["off"], int) and isinstance(found["auto"], int):
        found["share"] = round(found["auto"] / found["off"], 3)
        found["in pieces at the least of whole ops"] = within(path, found["off"], "auto")
    return found


def within(path: Path, budget: int, how: str) -> dict[str, Any]:
    plan, why = solved(path, budget=budget, pieces=how)
    if plan is None:
        return {"none": why}
    held = plan.recorded.promises.arena
    return {"overhead": round(plan.overhead, 4), "held": held, "gap": None if plan.gap is None else round(plan.gap, 4)}


def forward(path: Path) -> dict[str, Any]:
    """What the process holds, in the stock session and by the plan, and how far outputs are off."""
    costs = remat.profile(path, time_limit=SECONDS)
    plan, why = solved(path, minimize="peak", max_overhead=0.1, pieces="auto", costs=costs)
    if plan is None:
        return {"none": why}
    seen = remat.verify(plan, timing=20)
    process, timed = seen.report.process, seen.report.timed
    assert process is not None
    return {
        "stock": process.before,
        "plan": process.after,
        "share": round((process.after or 0) / (process.before or 1), 3),
        "foretold": plan.recorded.promises.arena,
        "overhead foretold": round(plan.overhead, 3),
        "overhead measured": None if timed is None else round(timed.after / timed.before - 1, 3),
        "ops in pieces": plan.recorded.pieces is not None,
        "differ": [one.output for one in process.differs],
    }


KEY = ("model",)


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*")


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, question in jobs(Path(folder) / "model.onnx"):
            if not asked.names or name in asked.names:
                yield {"model": name, **question()}


def jobs(path: Path) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    def step(network: str, options: dict[str, Any], ask: Callable[[Path], dict[str, Any]], **how: Any) -> Any:
        def run() -> dict[str, Any]:
            onnx.save(remat.grad(build(network, **options), **how), path)
            return ask(path)

        return run

    def model(make: Callable[[], onnx.ModelProto]) -> Any:
        def run() -> dict[str, Any]:
            onnx.save(make(), path)
            return forward(path)

        return run

    def gpt2(at: Path) -> dict[str, Any]:
        rows = {f"{size / 1e9} GB, {how}": within(at, size, how) for size, how in GPT2_ASKED}
        return {"least peak": least_peaks(at), **rows}

    found = [("GPT-2 small, batch 8 x 512, AdamW", step("gpt2", GPT2, gpt2, optimizer="adamw"))]
    found += [(name, step(*given, least_peaks)) for name, given in STEPS.items()]
    return [*found, *((f"forward: {name}", model(make)) for name, make in FORWARD.items())]


GPT2_ASKED = ((2_300_000_000, "auto"), (3_500_000_000, "off"), (3_500_000_000, "auto"))
