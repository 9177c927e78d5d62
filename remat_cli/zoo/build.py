"""A network of the zoo as a forward ONNX model.

Invariant: the same name, settings and seed give the same model, byte for byte.
"""

from __future__ import annotations

from typing import Any

import onnx

from remat_cli.errors import Usage
from remat_cli.zoo.layers import Net, both
from remat_cli.zoo.names import find

OPSETS = (20, onnx.defs.onnx_opset_version())


def build(name: str, weights: str = "auto", **asked: Any) -> onnx.ModelProto:
    """`weights` are random values in the file, inputs of the model, or whichever suits their size (auto)."""
    net, output = describe(name, **asked)
    return net.finish(name, output, weights)


def describe(
    name: str,
    *,
    opset: int = 20,
    seed: int = 0,
    dropout: float = 0.0,
    training: bool = True,
    free_batch: bool = False,
    **settings: int | str | tuple[int, int],
) -> tuple[Net, str]:
    """The network before any weight has bytes, and its output.

    `settings` are the network's own: batch, image, classes, layers, seq ..., as far as it has them. `free_batch`: the
    model takes a batch of any size.
    """
    network = find(name)
    known = network.options()
    for option, value in settings.items():
        if option not in known:
            raise Usage(f"{name} has no --{option}; it takes {', '.join('--' + o for o in known)}")
        if not isinstance(value, str) and min(both(value)) < 1:
            raise Usage(f"--{option} must be at least 1, not {value}")
    if free_batch and "batch" in settings:
        raise Usage("the batch is of one size or free: give --batch or --free-batch")
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise Usage(f"--opset must lie between {OPSETS[0]} and {OPSETS[1]}, not {opset}")
    if not 0 <= dropout < 1:
        raise Usage(f"--dropout must be at least 0 and less than 1, not {dropout}")
    net = Net(opset=opset, training=training, dropout_ratio=dropout, seed=seed, free_batch=free_batch)
    output = network.builder()(net, **{**network.settings, **settings})
    return net, output
