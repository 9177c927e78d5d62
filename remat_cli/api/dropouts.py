"""Which dropouts a PyTorch module trains, beside those that its exported file draws.

Invariant: what is asked of the module is its attributes alone; PyTorch is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from remat_cli.gradient.exported import first_of
from remat_cli.onnx_graph.load import load_with_tensors
from remat_cli.onnx_graph.walk import nodes_within

DRAWS = frozenset(("Dropout", "Bernoulli", "RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike"))
RECURRENT = ("RNN", "LSTM", "GRU")


def lost_dropouts(module: Any, model: Path | onnx.ModelProto) -> Iterator[str]:
    """A note where the module drops in more places than the file draws anything."""
    if not hasattr(module, "named_modules"):
        return
    names = list(_dropping(module))
    if not names:
        return
    loaded = load_with_tensors(model) if isinstance(model, Path) else model
    nodes = [*loaded.graph.node, *(node for function in loaded.functions for node in function.node)]
    drawn = sum(node.op_type in DRAWS for node in nodes_within(nodes))
    if drawn < len(names):
        yield (
            f"the module drops elements in {len(names)} places ({first_of(names)}), and its file in {drawn}: the rest "
            f"is not dropped; {_way_out(module)}"
        )


def _way_out(module: Any) -> str:
    """PyTorch's exporter writes the dropout between the layers of an nn.LSTM or nn.GRU, but never an nn.RNN's."""
    if any(_kind_of(part) == "RNN" and part.num_layers > 1 and part.dropout for _, part in module.named_modules()):
        return "PyTorch's exporter leaves out that of nn.RNN: make one nn.RNN for each layer, with nn.Dropout between"
    return "export the module in training mode, with optimize=False and without constant folding"


def _kind_of(part: Any) -> str:
    """The class of PyTorch's own that the part is of, or nothing."""
    return next((base.__name__ for base in type(part).__mro__ if base.__module__.startswith("torch.nn.modules")), "")


def _dropping(module: Any) -> Iterator[str]:
    """The names of modules in training mode that drop elements."""
    for name, part in module.named_modules():
        kind = _kind_of(part)
        if not getattr(part, "training", False):
            continue
        ratio = getattr(part, "p", 0) if "Dropout" in kind else getattr(part, "dropout", 0)
        known = "Dropout" in kind or kind == "MultiheadAttention" or (kind in RECURRENT and part.num_layers > 1)
        if known and isinstance(ratio, float | int) and ratio > 0:
            yield name or type(part).__name__
