"""Train with two training graphs of one net, side by side: the loss curves must be the same, bit for bit.

The graphs are what `remat grad --optimizer` writes: parameters and their state go in under their own names and come out
as NAME_new. Run it through run.sh.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from remat_cli.runtime.session import session_of

Feeds = dict[str, Any]


def batches(features: int, classes: int, batch: int, steps: int) -> Iterator[Feeds]:
    """Points labelled by a fixed random linear map: easy enough to see the loss fall."""
    random = np.random.default_rng(0)
    teacher = random.standard_normal((features, classes)).astype(np.float32)
    for _ in range(steps):
        points = random.standard_normal((batch, features)).astype(np.float32)
        yield {"input": points, "labels": (points @ teacher).argmax(1)}


def initial(net: Path, step: Path) -> Feeds:
    """The net's own initial weights; zeros for the optimizer's state."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(net).graph.initializer}
    state: Feeds = {}
    model = onnx.load(step)
    with_default = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name in weights:
            state[value.name] = weights[value.name]
        elif value.name not in ("input", "labels") and value.name not in with_default:
            state[value.name] = np.zeros(shape, np.float32)
    return state


def train(net: Path, step: Path, steps: int) -> list[float]:
    """The loss at each step."""
    runner = session_of(str(step), step.parent)
    outputs = [output.name for output in runner.get_outputs()]
    shape = next(i.shape for i in runner.get_inputs() if i.name == "input")
    state, losses = initial(net, step), []
    for data in batches(shape[1], 10, shape[0], steps):
        found = dict(zip(outputs, runner.run(outputs, {**state, **data}), strict=True))
        state.update({name.removesuffix("_new"): value for name, value in found.items() if name.endswith("_new")})
        losses.append(float(found["loss"]))
    return losses


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("net", type=Path)
    parser.add_argument("graphs", type=Path, nargs="+")
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    curves = {path.name: train(given.net, path, given.steps) for path in given.graphs}
    for step in range(0, given.steps, max(1, given.steps // 8)):
        print(f"step {step:3}", *(f"{name} {losses[step]:.6f}" for name, losses in curves.items()), sep="   ")
    first, *others = curves.values()
    same, falling = all(losses == first for losses in others), first[-1] < 0.9 * first[0]
    print("the same losses, bit for bit" if same else "the losses differ")
    print(f"the loss fell from {first[0]:.4f} to {first[-1]:.4f}" if falling else "the loss did not fall")
    return 0 if same and falling else 1


if __name__ == "__main__":
    sys.exit(main())
