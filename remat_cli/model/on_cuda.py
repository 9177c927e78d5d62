"""The ops of training graphs that ONNX Runtime's CUDA provider has no kernel for, and what its driver gives tensors.

Invariant: the data is for onnxruntime-gpu 1.31.1 and float32; a test compares it with the provider itself
(`tests/cuda`). An op named here runs on the CPU, with copies there and back, so its place in the order is not the
file's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx

from remat_cli.onnx_graph.attributes import attribute

NEVER = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Det", "Hardmax", "MaxUnpool", "Mean"),
    *("MeanVarianceNormalization", "Sinh", "Tan", "Unique"),
)
FROM_OPSET = dict.fromkeys(("Elu", "InstanceNormalization", "MaxPool", "Selu", "ThresholdedRelu"), 22)
GRANULE = 2 << 20  # bytes: the driver gives a block of half of it or more whole granules; seen on an H100
LAST_OPSET = 21  # the opset that still has kernels for those


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
