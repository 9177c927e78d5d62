"""What a PyTorch module does in training mode, beside what its exported file does.

Invariant: what is asked of the module is its attributes alone; PyTorch is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx

from remat_cli.errors import BadInput
from remat_cli.gradient.exported import first_of
from remat_cli.onnx_graph.walk import nodes_within

DRAWS = frozenset(("Dropout", "Bernoulli", "RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike"))
RECURRENT = ("RNN", "LSTM", "GRU")


def lost_modes(module: Any, model: onnx.ModelProto) -> Iterator[str]:
    """Notes where the module drops in more places than the file draws anything, or averages statistics as no file
    says."""
    if not hasattr(module, "named_modules"):
        return
    names = list(_dropping(module))
    if stacked := [name for name in names if _is_rnn(module, name)]:
        yield (
            f"PyTorch's exporter leaves out the dropout between the layers of nn.RNN ({first_of(stacked)}): nothing is "
            "dropped there; make one nn.RNN for each layer, with nn.Dropout between"
        )
    others = [name for name in names if name not in stacked]
    if others and (drawn := _draws_in(model)) < len(others):
        yield (
            f"the module drops elements in {len(others)} places ({first_of(others)}), and its file in {drawn}: the "
            "rest is not dropped; export the module in training mode, with optimize=False and without constant folding"
        )
    if averaging := [name for name, part in module.named_modules() if _averages(part)]:
        yield (
            f"statistics of {first_of(averaging)} are no average over all batches, as momentum=None in the module "
            "means: the file has a momentum that is fixed"
        )


def check_module(module: Any, model: onnx.ModelProto) -> None:
    """Refuse a module whose parameters have other sizes in the model: it is another's, whatever names they share."""
    if not hasattr(module, "named_parameters"):
        return
    stored = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for name, value in module.named_parameters(remove_duplicate=False):
        shape = getattr(value, "shape", None)
        if shape is not None and name in stored and sorted(stored[name]) != sorted(shape):
            raise BadInput(
                f"params is not the module of this model: '{name}' is {list(shape)} in the module, and "
                f"{stored[name]} in the model"
            )


def _draws_in(model: onnx.ModelProto) -> int:
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return sum(node.op_type in DRAWS for node in nodes_within(nodes))


def _is_rnn(module: Any, name: str) -> bool:
    """PyTorch's exporter writes the dropout between the layers of an nn.LSTM or nn.GRU, but never an nn.RNN's."""
    return any(_kind_of(part) == "RNN" and (own or type(part).__name__) == name for own, part in module.named_modules())


def _averages(part: Any) -> bool:
    """Whether it is a BatchNorm whose statistics are averages over all batches."""
    tracks = getattr(part, "training", False) and getattr(part, "track_running_stats", False)
    return bool(tracks) and _kind_of(part).startswith("BatchNorm") and part.momentum is None


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
