"""Estimated costs of ops on a device with a datasheet: arithmetic or traffic, whichever takes longer.

On a CPU what kernels work in is no estimate: it is measured there, once for each kind of op.

Invariant: the same graph has the same times everywhere, under the same settings of torch.
"""

from __future__ import annotations

import torch
from torch import fx

from profiles.roofline import Roofline, device
from remat_cli.torch.kinds import flops_of, traffic_of
from remat_cli.torch.lowering import Price, Pricing
from remat_cli.torch.reading import is_plain, tensors_of
from remat_cli.torch.workspaces import workspace_at

KINDS = {
    torch.float64: "double",
    torch.complex128: "double",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
}  # the others count as "float"
CONVOLUTIONS = {torch.ops.aten.convolution, torch.ops.aten.convolution_backward}


def estimates(name: str) -> Pricing:
    """Prices on one of the devices that `profiles/devices` describes. Raises KeyError for any other name."""
    sheet = device(name)
    return lambda op: Price(0) if is_plain(op) else Price(_time(op, sheet), workspace_at(op))


def arithmetic_ns(op: fx.Node, sheet: Roofline) -> float:
    """What the arithmetic of an op takes, at the rate of its type."""
    kinds = [KINDS.get(tensor.dtype, "float") for tensor in tensors_of(op.meta.get("val"))]
    name = next((kind for kind in ("double", "bfloat16", "float16") if kind in kinds), "float")
    if name not in sheet.peak:
        name = "float"
    exact = name == "float" and sheet.tf32 and not _allows_tf32(op)
    return 1e9 * flops_of(op) / (sheet.vector if exact else sheet.peak)[name]


def _time(op: fx.Node, sheet: Roofline) -> int:
    traffic = 1e9 * traffic_of(op) / sheet.memory_bandwidth
    return round(max(arithmetic_ns(op, sheet), traffic)) + sheet.launch_ns


def _allows_tf32(op: fx.Node) -> bool:
    """Whether torch lets a product of float32 be rounded: by default convolutions only."""
    convolves = getattr(op.target, "overloadpacket", None) in CONVOLUTIONS
    place = torch.backends.cudnn.conv if convolves else torch.backends.cuda.matmul
    return bool(place.fp32_precision == "tf32")
