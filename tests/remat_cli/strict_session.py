"""ONNX Runtime's strict session with its own account of memory: the witness of what remat predicts.

The session is made by the lines of docs/how-to/sessions.md, as a user would copy them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "sessions.md").read_text()
LINES = PAGE[PAGE.index("options = onnxruntime.SessionOptions()") :].partition("```")[0]


@dataclass(frozen=True)
class Kernel:
    """One kernel as it ran: `held` bytes were in the arena right after it, `grew` of them because of it."""

    node: str
    op_type: str
    held: int
    grew: int
    writes: int


def session(model: onnx.ModelProto, profile: Path | None = None) -> ort.InferenceSession:
    copied: dict[str, Any] = {"onnxruntime": ort}
    exec(LINES, copied)
    options = copied["options"]
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def feeds(model: onnx.ModelProto, seed: int = 0) -> dict[str, Any]:
    """Small positive numbers: valid as class ids, and nothing explodes."""
    rng = np.random.default_rng(seed)
    found = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = rng.random(shape) + 0.1 if dtype.kind == "f" else rng.integers(0, 2, shape)
        found[value.name] = array.astype(dtype)
    return found


def trace(model: onnx.ModelProto, folder: Path) -> tuple[list[Kernel], list[Any]]:
    """Every kernel of one run, in order, and the outputs. `held` is as requested, before any rounding up."""
    running = session(model, folder / "profile")
    outputs = running.run(None, feeds(model))
    events = json.loads(Path(running.end_profiling()).read_text())
    kernels = [
        Kernel(
            event["name"].removesuffix("_kernel_time"),
            event["args"]["op_name"],
            int(event["args"]["mem_bytes_requested_in_use"]),
            int(event["args"]["mem_requested_in_use_delta"]),
            int(event["args"]["output_size"]),
        )
        for event in events
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
    ]
    return kernels, outputs
