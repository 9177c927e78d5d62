"""Estimated costs of ops on a device with a datasheet: arithmetic or traffic, whichever takes longer.

Invariant: the same graph has the same prices everywhere.
"""

from __future__ import annotations

from torch import fx

from profiles.roofline import Roofline, device
from remat_cli.torch.kinds import flops_of, traffic_of
from remat_cli.torch.lowering import Price, Pricing
from remat_cli.torch.reading import is_plain, tensors_of

DOUBLES = ("torch.float64", "torch.complex128")


def estimates(name: str) -> Pricing:
    """Prices on one of the devices that `profiles/devices` describes. Raises KeyError for any other name."""
    sheet = device(name)
    return lambda op: Price(0) if is_plain(op) else Price(_time(op, sheet))


def _time(op: fx.Node, sheet: Roofline) -> int:
    kinds = [str(tensor.dtype) for tensor in tensors_of(op.meta.get("val"))]
    name = "double" if any(kind in DOUBLES for kind in kinds) else "float"
    if any(kind in ("torch.float16", "torch.bfloat16") for kind in kinds):
        name = "float16" if "float16" in sheet.peak else name
    flops = flops_of(op)
    arithmetic = flops / sheet.peak.get(name, sheet.peak["float"])
    return round(1e9 * max(arithmetic, traffic_of(op) / sheet.memory_bandwidth)) + sheet.launch_ns
