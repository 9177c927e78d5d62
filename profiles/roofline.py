"""The estimated cost of an op on a device that is not here: the longer of its arithmetic and its memory traffic.

Invariant: it needs no kernel and no device, only the signature and the device's datasheet (devices/*.yaml).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
import yaml

from profiles.flops import flops, traffic
from profiles.signature import VIEWS, OpSignature

# fmt: off
PRODUCTS = frozenset({
    "Conv", "FusedConv", "ConvTranspose", "ConvGrad", "ConvTransposeGrad", "MatMul", "FusedMatMul", "Gemm", "Einsum",
    "Attention", "LSTM", "GRU",
})
# fmt: on
FLOPS = "flops"  # the device on which one FLOP takes one unit of time and memory is free, as papers count


@dataclass(frozen=True, slots=True)
class Roofline:
    """Rates in FLOP/s by type name and bytes/s; `launch_ns` is paid by every kernel.

    `tf32`: products of float32 run at `peak` as TF32, and at the rate of `vector` where that is not allowed.
    """

    name: str
    source: str
    peak: Mapping[str, float]
    vector: Mapping[str, float]
    memory_bandwidth: float
    launch_ns: int
    memory: float
    tf32: bool = False

    def time(self, signature: OpSignature) -> int:
        """Nanoseconds."""
        if signature.op_type in VIEWS and not signature.domain:
            return 0
        rates = self.peak if signature.op_type in PRODUCTS else self.vector
        kind = onnx.TensorProto.DataType.Name(signature.made[0].dtype).lower() if signature.made else "float"
        arithmetic = (flops(signature) or 0) / rates.get(kind, rates["float"])
        return round(1e9 * max(arithmetic, traffic(signature) / self.memory_bandwidth)) + self.launch_ns


def names() -> list[str]:
    """The devices with a datasheet."""
    held = Path(__file__).with_name("devices")
    return sorted(entry.name.removesuffix(".yaml") for entry in held.iterdir() if entry.name.endswith(".yaml"))


@cache
def device(name: str) -> Roofline:
    """Read one device's figures. Raises KeyError for a name that is not among `names()`."""
    if name not in names():
        raise KeyError(name)
    text = (Path(__file__).with_name("devices") / f"{name}.yaml").read_text()
    return Roofline(**yaml.safe_load(text))


def estimate(signature: OpSignature, where: str) -> int:
    """The estimated time of one op on a device with a datasheet, in ns; for `flops`, its FLOPs."""
    return flops(signature) or 0 if where == FLOPS else device(where).time(signature)
