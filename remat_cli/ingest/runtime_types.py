"""The types of results that onnxruntime infers from its own schemas, for ops that onnx does not know.

Invariant: nothing runs; the op is loaded alone, and only types and small constants of its operands are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from profiles.device import quiet_runtime
from profiles.running import failures
from profiles.strict import strict_options

Partial = tuple[int, tuple[int | None, ...]]

RANK = "__rank"
WORDS = {
    "float": "FLOAT",
    "double": "DOUBLE",
    **{name: name.upper() for name in ("float16", "bfloat16", "bool", "string", "int4", "uint4")},
    **{f"{sign}int{bits}": f"{sign}int{bits}".upper() for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def ask_runtime(
    node: onnx.NodeProto,
    types: Mapping[str, Partial],
    constants: Mapping[str, np.ndarray],
    imports: Iterable[onnx.OperatorSetIdProto],
    ir_version: int,
) -> dict[int, Partial]:
    """The types of the node's outputs by index, as far as onnxruntime tells."""
    onnxruntime = quiet_runtime()
    reads = dict.fromkeys(name for name in node.input if name)
    writes = [name for name in node.output if name]
    graph = helper.make_graph(
        [node, *(helper.make_node("Shape", [name], [f"{name}{RANK}"]) for name in writes)],
        "one",
        [helper.make_tensor_value_info(name, *types[name]) for name in reads if name not in constants],
        [onnx.ValueInfoProto(name=f"{name}{end}") for name in writes for end in ("", RANK)],
        [numpy_helper.from_array(constants[name], name) for name in reads if name in constants],
    )
    model = helper.make_model(graph, opset_imports=list(imports), ir_version=ir_version)
    options = strict_options()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except failures():
        return {}
    told = {output.name: output for output in session.get_outputs()}
    found = ((place, told[name], told[f"{name}{RANK}"].shape) for place, name in enumerate(node.output) if name)
    known = ((place, _partial(output.type, output.shape, rank)) for place, output, rank in found)
    return {place: kind for place, kind in known if kind is not None}


def _partial(kind: str, shape: list[int | str | None], rank: list[int | str | None]) -> Partial | None:
    """The type, unless its rank is not known: onnxruntime reports an unknown shape like a scalar's, but not its
    rank."""
    word = WORDS.get(kind.removeprefix("tensor(").removesuffix(")"))
    if word is None or rank != [len(shape)]:
        return None
    return onnx.TensorProto.DataType.Value(word), tuple(size if isinstance(size, int) else None for size in shape)
