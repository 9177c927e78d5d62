"""The behaviour of each op in a runtime: which outputs share memory, which can be left out, which ops must run only
once.

Invariant: data only; every line is measured in ONNX Runtime's strict session or read from its kernel registrations
(docs/explanation/onnxruntime.md says which). Where nothing is known the answer is the safe one: no sharing, and an op
of an unknown domain runs once. What is said of CUDA is for onnxruntime-gpu 1.31.1 and float32, and held against the
provider itself by a test (`tests/cuda`); an op named there runs on the CPU, so its place in the order is not the
file's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache
from math import prod

import onnx

from profiles.signature import RECURRENT
from remat_cli.model.graph import Op
from remat_cli.onnx_graph.attributes import attribute
from remat_cli.onnx_graph.walk import nodes_within

STANDARD = ""
STANDARD_NAMES = (STANDARD, "ai.onnx")
MICROSOFT = "com.microsoft"

Places = tuple[tuple[int, int], ...]  # (output, input)

# The output is the input with another shape: no kernel touches the data.
VIEWS: dict[str, Places] = dict.fromkeys(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), ((0, 0),))

# In training mode the new running statistics overwrite the given ones, even those of a graph input.
TRAINING_BATCH_NORM: Places = ((1, 3), (2, 4))

# The output may take the place of the input, if that is its last use and both are of one shape and element size.
ACTIVATIONS = ("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh")
OVERWRITES: dict[str, dict[str, Places]] = {
    "cpu": {
        **dict.fromkeys((*ACTIVATIONS, "ThresholdedRelu"), ((0, 0),)),
        **dict.fromkeys(("BitCast", "Cast", "Celu", "Clip", "LogSoftmax", "Shrink", "Softmax"), ((0, 0),)),
        **dict.fromkeys(("ScatterElements", "TensorScatter", "Trilu"), ((0, 0),)),
        **dict.fromkeys(("Conv", "FusedConv"), ((0, 3),)),  # the summand that a fused Conv adds
    },
    "cuda": dict.fromkeys(
        (*ACTIVATIONS, "Gelu", "HardSwish", "QuickGelu", "ScatterND", "Shrink", "ThresholdedRelu", "Trilu"), ((0, 0),)
    ),
}

# Each element of the output is made of the one at its place in the input and written after that was read, so that both
# may lie in one buffer; of ops with several inputs no more than two are known to work like that, but for Where.
ELEMENTWISE = {
    *("Abs", "Add", "And", "Cast", "Clip", "Div", "Exp", "Identity", "Log", "Max", "Mean", "Min", "Mul", "Neg", "Not"),
    *("Or", "Pow", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub", "Sum", "Tanh", "Where", "Xor"),
}

THREE = {"Clip", "Where"}

# A kernel's copy of its indices, in memory that it takes of the system and not of the session's allocator: eight bytes
# an index, or a row of them.
INDICES = {"cpu": {"GatherND": -1, "ScatterElements": None, "ScatterND": -1}}  # the axis along which a row lies

# in bytes: the largest threshold that glibc reaches for memory from its heap; larger requests are mapped
GIVEN_BACK_BYTES = 32 << 20

# Standard functions without a kernel in ONNX Runtime, which replaces them by their bodies before it decides on an
# order: the body's nodes come last in line, and the order of the file is lost.
EXPANDED = {
    *("Bernoulli", "CastLike", "CenterCropPad", "GroupNormalization", "HardSwish", "Mish"),
    *("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Swish"),
}

# Each kernel has its own generator, which goes on from run to run: with a `seed`, copies of an op draw the same numbers
# in every run; without one, never.
RANDOM = {
    *("Bernoulli", "BiasDropout", "BitmaskBiasDropout", "BitmaskDropout", "Dropout", "Multinomial", "RandomNormal"),
    *("RandomNormalLike", "RandomUniform", "RandomUniformLike"),
}

# Ops that change something beyond their outputs: buffers they are given, or the world.
EFFECTS = {
    *("AdamOptimizer", "AdamWOptimizer", "InPlaceAccumulator", "InPlaceAccumulatorV2", "LambOptimizer"),
    *("NcclAllGather", "NcclAllReduce", "NcclReduceScatter", "PythonOp", "PythonOpGrad", "RecordEvent", "Recv"),
    *("Send", "SGDOptimizer", "SGDOptimizerV2", "WaitEvent", "YieldOp", "ZeroGradient"),
}

PURE_DOMAINS = {STANDARD, MICROSOFT, "ai.onnx.ml", "ai.onnx.preview", "com.microsoft.nchwc", "org.pytorch.aten"}

TRAINING_BUILD = EFFECTS | {
    *("BatchNormInternal", "BitmaskDropout", "BroadcastGradientArgs", "ConcatTraining", "MixedPrecisionScale"),
    *("ReduceAllL2", "ReduceSumTraining", "Scale", "SoftmaxCrossEntropyLossInternal", "SplitTraining"),
}

# Outputs of contrib and training ops that can be left out, by index.
OPTIONAL = {
    "EmbedLayerNormalization": {1, 2},
    "SimplifiedLayerNormalization": {1},
    "SkipLayerNormalization": {1, 2, 3},
    "SkipSimplifiedLayerNormalization": {1, 2, 3},
    "SoftmaxCrossEntropyLossInternal": {1},
}

# Outputs that the schema calls optional and the kernel all the same makes: it insists on them, or takes as much memory
# for them while it runs, a Dropout beside its session's allocator.
MADE_ANYWAY = {"BatchNormalization", "Dropout", *RECURRENT}

ATTENTION_PASTS = slice(4, 6)  # the earlier keys and values, which the kernel needs all together or not at all
ATTENTION_PRESENTS = {1, 2}
NEVER = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Det", "Hardmax", "MaxUnpool", "Mean"),
    *("MeanVarianceNormalization", "Sinh", "Tan", "Unique"),
)
FROM_OPSET = dict.fromkeys(("Elu", "InstanceNormalization", "MaxPool", "Selu", "ThresholdedRelu"), 22)
GRANULE = 2 << 20  # bytes: the driver gives a block of half of it or more whole granules; seen on an H100
LAST_OPSET = 21  # the opset that still has kernels for those


def views(op: Op) -> Places:
    """(output, input) places where the output is a view of the input."""
    return _views(op.node, op.domain, len(op.outputs), len(op.inputs))


def views_of(node: onnx.NodeProto) -> Places:
    """The same of any node, where the output is not left out."""
    domain = STANDARD if node.domain in STANDARD_NAMES else node.domain
    found = _views(node, domain, len(node.output), len(node.input))
    return tuple((out, into) for out, into in found if node.output[out])


def _views(node: onnx.NodeProto, domain: str, outputs: int, inputs: int) -> Places:
    if node.op_type == "BatchNormalization" and _trains(node):
        return tuple(pair for pair in TRAINING_BATCH_NORM if pair[0] < outputs)
    return _usual_views(node.op_type, outputs, inputs) if domain == STANDARD else ()


@cache
def _usual_views(op_type: str, outputs: int, inputs: int) -> Places:
    return tuple(pair for pair in VIEWS.get(op_type, ()) if pair[0] < outputs and pair[1] < inputs)


def overwrites(op: Op, provider: str) -> Places:
    """(output, input) places where the output may take the place of the input."""
    table = OVERWRITES.get(provider, {}) if op.domain in PURE_DOMAINS else {}
    return tuple(pair for pair in table.get(op.op_type, ()) if pair[1] < len(op.inputs))


def elementwise(op: Op, shape: Sequence[int], shape_of: Callable[[str], Sequence[int]]) -> Places:
    """(output, input) places where the output is made of the input element by element, and is of its shape."""
    if op.op_type == "BatchNormalization" and _trains(op.node):
        return tuple(pair for pair in TRAINING_BATCH_NORM if pair[0] < len(op.outputs))
    if op.domain != STANDARD or op.op_type not in ELEMENTWISE or (len(op.inputs) > 2 and op.op_type not in THREE):
        return ()
    places = range(1, 3) if op.op_type == "Where" else range(1 if op.op_type == "Clip" else 2)
    return tuple(
        (0, into) for into in places if into < len(op.inputs) and tuple(shape_of(op.inputs[into])) == tuple(shape)
    )


def aside(op: Op, shapes: Mapping[str, Sequence[int]], provider: str) -> int:
    """The bytes that the kernel takes beside the session's allocator while it runs."""
    if op.op_type == "Dropout" and len(op.inputs) > 2 and not any(op.outputs[1:]) and provider == "cpu":
        return prod(shapes[op.inputs[0]])  # its mask, where nobody reads it
    table = INDICES.get(provider, {}) if op.domain == STANDARD else {}
    if op.op_type not in table:
        return 0
    return 8 * prod(shapes[op.inputs[1]][: table[op.op_type]])


def most_beside(sizes: Iterable[int]) -> int:
    """The most that a process holds for kernels that take these sizes beside the allocator, one at a time.

    The C library gives back at once only blocks larger than `GIVEN_BACK_BYTES`. Of smaller blocks it keeps the most
    that was ever taken, for blocks that are no larger; a larger one comes beside that.
    """
    kept, given_back = [0], [0]
    for size in sizes:
        (given_back if size > GIVEN_BACK_BYTES else kept).append(size)
    return max(kept) + max(given_back)


def optional_outputs(op: Op, opset: int) -> set[int]:
    """Indices of outputs that the op can run without; never all of them."""
    written = {place for place, name in enumerate(op.outputs) if name}
    found = written & _optional_places(op, opset)
    return found - {min(written)} if found and found == written else found


def _optional_places(op: Op, opset: int) -> Set[int]:
    if op.op_type in MADE_ANYWAY:
        return set()
    found = _optional_by_schema(op.op_type, opset) if op.domain == STANDARD else None
    if found is not None:
        insisted = op.op_type == "Attention" and any(op.inputs[ATTENTION_PASTS])
        return found - ATTENTION_PRESENTS if insisted else found
    return OPTIONAL.get(op.op_type, set())


@cache
def _optional_by_schema(op_type: str, opset: int) -> frozenset[int] | None:
    """What the op's schema calls optional; None where ONNX has no such op."""
    if not onnx.defs.has(op_type, opset, ""):
        return None
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    outputs = onnx.defs.get_schema(op_type, opset, "").outputs
    return frozenset(place for place, output in enumerate(outputs) if output.option == optional)


def runs_once(op: Op) -> bool:
    """Whether two runs of the op might give different results, or have an effect twice."""
    return op.domain not in PURE_DOMAINS or any(map(_is_impure, nodes_within([op.node])))


def _is_impure(node: onnx.NodeProto) -> bool:
    return draws_unseeded(node) or node.op_type in EFFECTS or _trains(node)


def draws_unseeded(node: onnx.NodeProto) -> bool:
    """Whether two runs of the node draw different numbers."""
    if node.op_type == "Dropout" and not (len(node.input) > 2 and node.input[2]):
        return False  # without the input that turns training on, it is the identity
    return node.op_type in RANDOM and all(attribute.name != "seed" for attribute in node.attribute)


def _trains(node: onnx.NodeProto) -> bool:
    """Whether this is a BatchNormalization in training mode, which overwrites the statistics it is given."""
    return node.op_type == "BatchNormalization" and bool(attribute(node, "training_mode"))


def needs_training_build(node: onnx.NodeProto) -> bool:
    """Whether only a training build of ONNX Runtime has a kernel for the node."""
    stem = node.op_type.removesuffix("_13").removesuffix("_dX")
    return node.op_type in TRAINING_BUILD or (stem.endswith("Grad") and node.domain in (STANDARD, MICROSOFT))


def lost_to_granules(sizes: Iterable[int]) -> int:
    """The bytes that the driver gives blocks of these sizes beyond what they need. Small ones share a granule."""
    return sum(-size % GRANULE for size in sizes if 2 * size >= GRANULE)


def without_kernel(model: onnx.ModelProto) -> list[str]:
    """The ops that run on the CPU because CUDA has no kernel for them, with the reason and the number of nodes."""
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    found: Counter[str] = Counter()
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type in NEVER:
            found[node.op_type] += 1
        elif opset >= FROM_OPSET.get(node.op_type, opset + 1):
            found[f"{node.op_type} of opset {opset} (of {LAST_OPSET} it has one)"] += 1
        elif node.op_type == "ConvTranspose" and _is_lopsided(node):
            found["ConvTranspose with other padding at the end than at the beginning"] += 1
    return [f"{what}, {count} node{'s' * (count > 1)}" for what, count in sorted(found.items())]


def _is_lopsided(node: onnx.NodeProto) -> bool:
    pads = attribute(node, "pads", [])
    return pads[: len(pads) // 2] != pads[len(pads) // 2 :]
