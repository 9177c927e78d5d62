"""Lists why a model cannot be differentiated: each kind of op with its number, and what to do instead.

Invariant: nothing is refused that a rule can do. The first line says how many ops are refused; each kind has one more
line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import defs

from remat_cli.errors import BadInput

FUSED = "fused by a runtime's optimizer: give the model as it was exported"
QUANTIZED = "quantized: train the float model, and quantize it afterwards"
LOOPS = "control flow has no gradient: unroll it in the module, with lengths that are known when it is exported"
BRANCHES = "control flow has no gradient: choose the branch before the export, or take both by torch.where"
PICKS = "has no gradient: detach what it gives in the module, or take the loss of a value before it (--logits)"
OTHER = "write it by simpler ops in the module, or leave what lies behind it out of --wrt"
ADVICE: Mapping[str, str] = {
    **dict.fromkeys(("Loop", "Scan", "SequenceMap"), LOOPS),
    "If": BRANCHES,
    **dict.fromkeys(("TopK", "NonMaxSuppression", "Unique", "Multinomial", "StringNormalizer"), PICKS),
}
QUANTIZING = ("QLinear", "QuantizeLinear", "DequantizeLinear", "DynamicQuantize", "ConvInteger", "MatMulInteger")
LISTED_KINDS = 12  # kinds in the list


@dataclass(frozen=True, slots=True)
class Refusal:
    """`kind`: the op, with its domain if it has one. `why`: the rule's message; empty where there is no rule."""

    kind: str
    node: str
    why: str = ""


def kind_of(node: onnx.NodeProto) -> str:
    """The op, with its domain where it is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def is_defined(node: onnx.NodeProto, opset: int) -> bool:
    """Whether ONNX defines the op; if not, its outputs' shapes are unknown too."""
    return defs.has(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)


def hides_a_gradient(node: onnx.NodeProto, opset: int) -> bool:
    """Whether an op without a rule makes floats of floats, so that it would need one."""
    if node.op_type in ADVICE or not is_defined(node, opset):
        return True
    schema = defs.get_schema(node.op_type, opset, "" if node.domain == "ai.onnx" else node.domain)
    if not schema.inputs or not schema.outputs or schema.has_function or schema.has_context_dependent_function:
        return False
    return schema.inputs[0].type_str == schema.outputs[0].type_str and "tensor(float)" in schema.inputs[0].types


def refuse(refusals: Sequence[Refusal]) -> None:
    """Raise a BadInput that lists them, if there are any."""
    if not refusals:
        return
    kinds: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in refusals:
        kinds.setdefault((refusal.kind, refusal.why and _bare(refusal)), []).append(refusal)
    lines = [_line(kind, found) for (kind, _), found in list(kinds.items())[:LISTED_KINDS]]
    if len(kinds) > LISTED_KINDS:
        lines.append(f"and {len(kinds) - LISTED_KINDS} more kinds")
    if len(lines) == 1:
        raise BadInput(lines[0])
    raise BadInput("\n  ".join([f"{len(refusals)} ops of {len(kinds)} kinds cannot be differentiated:", *lines]))


def _line(kind: str, found: Sequence[Refusal]) -> str:
    first, *others = found
    if first.why:
        return first.why + (f" ({len(others)} more like it)" if others else "")
    where = f"node '{first.node}'" + (f" and {len(others)} more" if others else "")
    return f"no gradient rule for {kind} ({where}): {_advice(kind)}"


def _advice(kind: str) -> str:
    domain, _, name = kind.rpartition(".")
    if name.startswith(QUANTIZING):
        return QUANTIZED
    if domain in ("com.microsoft", "com.microsoft.nchwc"):
        return FUSED
    return ADVICE.get(name, OTHER)


def _bare(refusal: Refusal) -> str:
    """The rule's message, without the name of the node."""
    return refusal.why.replace(f"'{refusal.node}'", "")
