"""Small models for the tests of ingest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def value(name: str, *shape: int | str, dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[str],
    weights: dict[str, Any] | None = None,
    opset: int = 18,
    **rest: Any,
) -> onnx.ModelProto:
    """Outputs are left for inference to find out."""
    graph = helper.make_graph(
        nodes,
        "test",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items()],
    )
    domains = {"", "com.microsoft", *(entry.domain for entry in nodes)}
    opsets = [helper.make_opsetid(domain, 1 if domain else opset) for domain in sorted(domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, **rest)


def save(made: onnx.ModelProto, folder: Path, name: str = "m.onnx") -> Path:
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path
