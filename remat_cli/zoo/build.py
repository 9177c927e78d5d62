"""A network of the zoo as a forward ONNX model.

Invariant: the same name, settings and seed give the same model, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import onnx

from remat_cli.errors import Usage
from remat_cli.zoo.layers import Net, as_pair
from remat_cli.zoo.names import find

OPSETS = (20, onnx.defs.onnx_opset_version())


def build(name: str, weights: str = "auto", **asked: Any) -> onnx.ModelProto:
    """`weights` are random values in the file, inputs of the model, or whichever suits their size (auto)."""
    net, output = describe(name, **asked)
    return net.finish(name, output, weights)


@dataclass(frozen=True, slots=True)
class ModelForm:
    """What a model of any network has. `free_batch`: it takes a batch of any size."""

    opset: int = 20
    seed: int = 0
    dropout: float = 0.0
    training: bool = True
    free_batch: bool = False

    def check(self) -> None:
        if not OPSETS[0] <= self.opset <= OPSETS[1]:
            raise Usage(f"--opset must lie between {OPSETS[0]} and {OPSETS[1]}, not {self.opset}")
        if not 0 <= self.dropout < 1:
            raise Usage(f"--dropout must be at least 0 and less than 1, not {self.dropout}")


def describe(name: str, **asked: Any) -> tuple[Net, str]:
    """The network before any weight has bytes, and its output.

    `asked`: fields of `ModelForm`, and the network's own settings: batch, image, classes, layers, seq ..., as far as it
    has them.
    """
    own = {part.name for part in fields(ModelForm)}
    form = ModelForm(**{key: value for key, value in asked.items() if key in own})
    settings = {key: value for key, value in asked.items() if key not in own}
    network = find(name)
    known = network.options()
    for option, value in settings.items():
        if option not in known:
            raise Usage(f"{name} has no --{option}; it takes {', '.join('--' + o for o in known)}")
        if not isinstance(value, str) and min(as_pair(value)) < 1:
            raise Usage(f"--{option} must be at least 1, not {value}")
    if form.free_batch and "batch" in settings:
        raise Usage("the batch is of one size or free: give --batch or --free-batch")
    form.check()
    net = Net(form.opset, form.training, form.dropout, form.seed, form.free_batch)
    output = network.build(net, settings)
    return net, output
