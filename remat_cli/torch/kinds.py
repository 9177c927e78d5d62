"""How an op's kernel can share work with its neighbours', in the words of the problem; and what its arithmetic takes.

Invariant: only the minimum cut and the estimates ask; nothing that is legal depends on it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from remat_cli.torch.private import OpOverload
from remat_cli.torch.reading import bytes_of, plain_tensors_of
from solvers.problem import Kind

_aten, _prims = torch.ops.aten, torch.ops.prims
ALSO_POINTWISE = {
    _aten.clone, _aten._to_copy, _aten.full_like, _aten.full, _aten.where, _aten.native_dropout_backward,
    _aten.gelu_backward, _aten.threshold_backward, _aten.silu_backward, _aten.zeros_like, _aten.ones_like,
    _prims.convert_element_type, _aten.empty_like, _aten.arange, _prims.iota, _aten.masked_fill, _aten.new_zeros,
    _aten.constant_pad_nd, _aten.copy, _aten.scalar_tensor,
}  # fmt: skip
REDUCTIONS = {
    _aten.sum, _aten.mean, _aten.amax, _aten.amin, _aten.var_mean, _aten.var, _aten.max, _aten.min, _aten.prod,
    _aten.any, _aten.argmax, _aten.native_layer_norm, _aten._softmax, _aten._log_softmax, _aten.logsumexp,
}  # fmt: skip


def kind_of(op: fx.Node) -> Kind:
    packet = getattr(op.target, "overloadpacket", None)
    if packet in flop_registry:
        return Kind.COMPUTE
    if is_pointwise(op):
        return Kind.POINTWISE
    if packet in REDUCTIONS:
        return Kind.REDUCTION
    return Kind.CONCAT if packet is _aten.cat else Kind.OPAQUE


def is_pointwise(op: fx.Node) -> bool:
    if not isinstance(op.target, OpOverload):
        return False
    return torch.Tag.pointwise in op.target.tags or op.target.overloadpacket in ALSO_POINTWISE


def flops_of(op: fx.Node) -> int:
    """Floating point operations, by torch's own formulas; 0 where it has none."""
    formula = flop_registry.get(getattr(op.target, "overloadpacket", None))
    if formula is None:
        return 0
    args, kwargs = fx.node.map_arg((op.args, op.kwargs), lambda node: node.meta.get("val"))
    try:
        return bytes_of(formula(*args, **kwargs, out_val=op.meta["val"]))
    except (TypeError, AttributeError, ValueError, AssertionError, KeyError):
        return 0  # the formula is for other arguments


def traffic_of(op: fx.Node) -> int:
    """The bytes that are read and written."""
    values: list[Any] = [argument.meta.get("val") for argument in op.all_input_nodes]
    return sum(_touched(tensor) for tensor in plain_tensors_of([*values, op.meta.get("val")]))


def _touched(tensor: torch.Tensor) -> int:
    """The bytes of the tensor, at most those of its storage: an expanded scalar is one number."""
    return min(bytes_of(tensor.untyped_storage().nbytes()), bytes_of(tensor.numel() * tensor.element_size()))
