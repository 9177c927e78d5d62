"""Shape rules for ops that onnx does not know: training ops, and contrib ops that exporters and fusions write.

Invariant: a rule gives one (type, shape) for each output in the op's signature, None where it cannot tell; signatures
are those of onnxruntime's training_op_defs.cc, contrib_defs.cc and bert_defs.cc. An op is found by its name alone,
because onnxruntime-training puts some of them in the standard domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx

from remat_cli.onnx_graph.attributes import attribute

Type = tuple[int, tuple[int, ...]]
Types = list[Type | None]
BOOL, FLOAT = onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT
INT32, INT64, UINT32 = onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.UINT32
FLAG: Type = (BOOL, (1,))
# Ops of this domain have blocked channels; their shapes follow the standard op of the same name.
BLOCKED = "com.microsoft.nchwc"
# Ops that extend a standard op without changing its result's shape: the standard op, and how many inputs it has.
ALIASES: dict[str, tuple[str, int]] = {
    "FusedConv": ("Conv", 3),
    "FusedGemm": ("Gemm", 3),
    "ReduceSumTraining": ("ReduceSum", 2),
}
# Ops that make one value of the type and shape of their first input, and of their second.
LIKE_FIRST = """
    BiasAdd BiasFastGeluGrad_dX BiasGelu BiasGeluGrad_dX BiasSoftmax BitmaskDropoutGrad DropoutGrad FakeQuantGrad
    FastGelu FastGeluGrad Gelu GeluGrad InPlaceAccumulator LeakyReluGrad LogSoftmaxGrad LogSoftmaxGrad_13
    MeanVarianceNormalization QuickGelu QuickGeluGrad ReluGrad ReshapeGrad Scale SigmoidGrad SinGrad SoftmaxGrad
    SoftmaxGrad_13 TanhGrad ZeroGradient
"""
LIKE_SECOND = """
    ResizeGrad SoftmaxCrossEntropyGrad SoftmaxCrossEntropyLossGrad SoftmaxCrossEntropyLossInternalGrad
    SparseSoftmaxCrossEntropyGrad
"""


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node with the types and known contents of its inputs."""

    node: onnx.NodeProto
    types: Mapping[str, Type]
    constants: Mapping[str, np.ndarray]
    makers: Mapping[str, onnx.NodeProto]

    def has(self, place: int) -> bool:
        return place < len(self.node.input) and bool(self.node.input[place])

    def type(self, place: int) -> Type:
        if not self.has(place):
            raise ValueError(f"input {place} is missing")
        return self.types[self.node.input[place]]

    def like(self, place: int) -> Type | None:
        return self.type(place) if self.has(place) else None

    def dtype(self, place: int) -> int:
        return self.type(place)[0]

    def shape(self, place: int) -> tuple[int, ...]:
        return self.type(place)[1]

    def constant(self, place: int) -> tuple[int, ...] | None:
        found = self.constants.get(self.node.input[place])
        return None if found is None else tuple(int(x) for x in found.ravel())

    def attribute(self, name: str, default: Any) -> Any:
        return attribute(self.node, name, default)


Rule = Callable[[TypedNode], Types]


def like(*places: int) -> Rule:
    """A rule: each output has the type and shape of one input."""
    return lambda call: [call.like(place) for place in places]


def shape_from(place: int, data: int) -> Rule:
    """A rule: the one output has the shape that a constant input contains."""

    def rule(call: TypedNode) -> Types:
        sizes = call.constant(place)
        return [None if sizes is None else (call.dtype(data), sizes)]

    return rule


def _conv_transpose_grad(call: TypedNode) -> Types:
    channels = call.shape(2)[1] * call.attribute("group", 1)
    return [call.like(1), call.like(2), (call.dtype(1), (channels,))]


def _loss(call: TypedNode) -> Types:
    whole = call.attribute("reduction", b"mean") == b"none"
    return [(call.dtype(0), call.shape(1) if whole else ()), call.like(0)]


def _bitmask(call: TypedNode) -> Type:
    return UINT32, ((prod(call.shape(0)) + 31) // 32,)


def _layer_norm(stats: int) -> Rule:
    """The result, followed by `stats` outputs of one number for each normalised row."""

    def rule(call: TypedNode) -> Types:
        shape = call.shape(0)
        axis = call.attribute("axis", -1) % len(shape)
        row = (FLOAT, (*shape[:axis], *(1 for _ in shape[axis:])))
        return [call.like(0), *[row] * stats]

    return rule


def _skip_layer_norm(call: TypedNode) -> Types:
    row = (FLOAT, (*call.shape(0)[:-1], 1))
    return [call.like(0), row, row, call.like(0)]


def _embed_layer_norm(call: TypedNode) -> Types:
    batch, length = call.shape(0)
    table = call.dtype(2), (batch, length, call.shape(2)[1])
    return [table, (INT32, (batch,)), table]


def _attention(call: TypedNode) -> Types:
    batch, length, _ = call.shape(0)
    sizes = call.attribute("qkv_hidden_sizes", None)
    width = sizes[2] if sizes else call.shape(1)[1] // 3
    heads = call.attribute("num_heads", 1)
    past = call.shape(4)[3] if call.has(4) else 0
    present = (call.dtype(0), (2, batch, heads, past + length, width // heads))
    return [(call.dtype(0), (batch, length, width)), present]


def _multi_head_attention(call: TypedNode) -> Types:
    query = call.shape(0)
    if len(query) != 3:
        return [(call.dtype(0), (query[0], query[1], query[2] * query[4]))]
    width = call.shape(2)[2] if call.has(2) and len(call.shape(2)) == 3 else query[2]
    return [(call.dtype(0), (*query[:2], width))]


def _concat_training(call: TypedNode) -> Types:
    shapes = [call.shape(place) for place in range(len(call.node.input))]
    axis = call.attribute("axis", 0) % len(shapes[0])
    whole = list(shapes[0])
    whole[axis] = sum(shape[axis] for shape in shapes)
    return [(call.dtype(0), tuple(whole)), (INT64, (len(shapes),))]


def _split_training(call: TypedNode) -> Types:
    axis = call.attribute("axis", 0) % len(call.shape(0))
    shape = call.shape(0)
    count = len(call.node.output)
    parts = call.constant(1) if call.has(1) else (shape[axis] // count,) * count
    if parts is None:
        return [None] * count
    return [(call.dtype(0), (*shape[:axis], part, *shape[axis + 1 :])) for part in parts]


def _max_pool_grad(call: TypedNode) -> Types:
    """The shape is that of the input of the MaxPool whose indices these are."""
    pool = call.makers.get(call.node.input[1])
    return [None if pool is None or pool.op_type != "MaxPool" else call.types[pool.input[0]]]


def _average_pool_grad(call: TypedNode) -> Types:
    """The shape is that of the input of the pool with the same window and output; the gradient itself does not say
    it."""
    window = {a.name: a.SerializeToString() for a in call.node.attribute}
    for name, maker in call.makers.items():
        same = maker.op_type in ("AveragePool", "GlobalAveragePool") and call.types[name] == call.type(0)
        if same and {a.name: a.SerializeToString() for a in maker.attribute} == window:
            return [call.types[maker.input[0]]]
    return [None]


def _fused_matmul(call: TypedNode) -> Types:
    """transBatch moves the first axis of an operand next to its last before the product."""
    (a, b) = (_operand(call, place, side) for place, side in ((0, "A"), (1, "B")))
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    rows, columns = (a[-2:-1] if len(a) > 1 else ()), (b[-1:] if len(b) > 1 else ())
    return [(call.dtype(0), (*batch, *rows, *columns))]


def _operand(call: TypedNode, place: int, side: str) -> tuple[int, ...]:
    shape = call.shape(place)
    if call.attribute(f"transBatch{side}", 0):
        shape = (*shape[1:-1], shape[0], shape[-1])
    if call.attribute(f"trans{side}", 0) and len(shape) > 1:
        shape = (*shape[:-2], shape[-1], shape[-2])
    return shape


def _broadcast_gradient_args(call: TypedNode) -> Types:
    a, b = call.constant(0), call.constant(1)
    if a is None or b is None:
        return [None, None]
    return [(INT64, (len(_reduced_axes(a, b)),)), (INT64, (len(_reduced_axes(b, a)),))]


def _reduced_axes(shape: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    """The axes over which the gradient of a broadcast operand is summed."""
    rank = max(len(shape), len(other))
    padded, beside = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other
    return [i for i in range(rank) if i < rank - len(shape) or (padded[i] == 1 and beside[i] != 1)]


def _mixed_precision_scale(call: TypedNode) -> Types:
    to = call.attribute("to", FLOAT)
    shapes = [call.shape(place) for place in range(1, len(call.node.input))]
    if call.attribute("fuse_outputs", 0):
        return [(to, (sum(prod(shape) for shape in shapes),))]
    return [(to, shape) for shape in shapes]


def _yield(call: TypedNode) -> Types:
    """The outputs of the forward pass go out to the caller, who hands in their gradients."""
    without = call.attribute("non_differentiable_outputs", [])
    return [call.like(place) for place in range(len(call.node.input)) if place not in without]


def _reorder_input(call: TypedNode) -> Types:
    """The number of channels is rounded up to a whole block: 16 with AVX-512, on other machines 8 or 16."""
    shape = call.shape(0)
    batch, channels, *image = (shape[0], shape[-1], *shape[1:-1]) if call.attribute("channels_last", 0) else shape
    return [(call.dtype(0), (batch, -(-channels // 16) * 16, *image))]


def _reorder_output(call: TypedNode) -> Types:
    """Blocks of channels are converted back to the original number of channels."""
    batch, _, *image = call.shape(0)
    channels = call.attribute("channels", 0)
    last = call.attribute("channels_last", 0)
    return [(call.dtype(0), (batch, *image, channels) if last else (batch, channels, *image))]


def _upsample(call: TypedNode) -> Types:
    """Of blocked channels: the standard op of this name is gone."""
    scales = call.attribute("scales", [1] * len(call.shape(0)))
    return [(call.dtype(0), tuple(size * scale for size, scale in zip(call.shape(0), scales, strict=True)))]


RULES: dict[str, Rule] = {
    **dict.fromkeys(LIKE_FIRST.split(), like(0)),
    **dict.fromkeys(LIKE_SECOND.split(), like(1)),
    "AdamOptimizer": like(1, 4, 5, 2, 3, 6),
    "Attention": _attention,
    "AveragePoolGrad": _average_pool_grad,
    "BatchNormInternal": like(0, 3, 4, 3, 3),
    "BatchNormalizationGrad": like(1, 2, 2),
    "BiasDropout": lambda call: [call.like(0), (BOOL, call.shape(0))],
    "BitmaskBiasDropout": lambda call: [call.like(0), _bitmask(call)],
    "BitmaskDropout": lambda call: [call.like(0), _bitmask(call)],
    "BroadcastGradientArgs": _broadcast_gradient_args,
    "ConcatTraining": _concat_training,
    "ConvGrad": lambda call: [call.like(1), call.like(2), (call.dtype(1), call.shape(2)[:1])],
    "ConvTransposeGrad": _conv_transpose_grad,
    "DivGrad": like(1, 2),
    "EmbedLayerNormalization": _embed_layer_norm,
    "FakeQuant": lambda call: [call.like(0), (BOOL, call.shape(0))],
    "FusedMatMul": _fused_matmul,
    "GatherElementsGrad": shape_from(1, 0),
    "GatherGrad": shape_from(0, 2),
    "GatherNDGrad": shape_from(0, 2),
    "Group": lambda _: [(BOOL, ())],
    "InPlaceAccumulatorV2": lambda call: [FLAG, call.like(0)],
    "InvertibleLayerNormalizationGrad": like(0, 2, 2),
    "IsAllFinite": lambda _: [(BOOL, ())],
    "IsFinite": lambda call: [(BOOL, call.shape(0))],
    "LayerNormalizationGrad": like(1, 2, 2),
    "MaxPoolGrad": _max_pool_grad,
    "MixedPrecisionScale": _mixed_precision_scale,
    "MultiHeadAttention": _multi_head_attention,
    "ReduceAllL2": lambda _: [(FLOAT, ())],
    "ReorderInput": _reorder_input,
    "ReorderOutput": _reorder_output,
    "SGDOptimizer": like(1, 2),
    "SimplifiedLayerNormalization": _layer_norm(1),
    "SimplifiedLayerNormalizationGrad": like(1, 2),
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_layer_norm,
    "SliceGrad": shape_from(1, 0),
    "SoftmaxCrossEntropy": lambda call: [(call.dtype(0), ()), call.like(0)],
    "SoftmaxCrossEntropyLossInternal": _loss,
    "SparseSoftmaxCrossEntropy": _loss,
    "SplitTraining": _split_training,
    "TransposeMatMul": _fused_matmul,
    "Upsample": _upsample,
    "YieldOp": _yield,
}
