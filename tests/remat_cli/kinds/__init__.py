"""Small training-like graphs of the kinds beyond plain ones, by seed: `KINDS` says which, `model` makes one."""

from __future__ import annotations

import onnx

from tests.remat_cli.kinds.by_data import BY_DATA, SAID_ELSEWHERE
from tests.remat_cli.kinds.chain import Chain, Twist
from tests.remat_cli.kinds.control import CONTROL, FUNCTIONS
from tests.remat_cli.kinds.numbers import HALF, QUANTIZED, RANDOM, RECURRENT
from tests.remat_cli.kinds.outputs import OTHERS, OUTPUTS
from tests.remat_cli.kinds.unusual import NARROW, NESTED, ODD_VALUES, WIDE

GROUPS: dict[str, dict[str, Twist]] = {
    "control flow": CONTROL,
    "functions": FUNCTIONS,
    "random": RANDOM,
    "half precision": HALF,
    "quantized": QUANTIZED,
    "recurrent": RECURRENT,
    "outputs": OUTPUTS,
    "others": OTHERS,
    "nested": NESTED,
    "odd values": ODD_VALUES,
    "narrow numbers": NARROW,
    "wide": WIDE,
    "by data": BY_DATA,
    "said elsewhere": SAID_ELSEWHERE,
}
KINDS: dict[str, Twist] = {name: twist for group in GROUPS.values() for name, twist in group.items()}


def model(kind: str, seed: int = 0) -> onnx.ModelProto:
    """A chain of products with the kind's ops at one of its places."""
    return Chain(kind, seed).with_twist(KINDS[kind])
