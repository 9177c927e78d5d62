"""Fused first: onnxruntime optimizes a training graph offline, and what really runs is profiled and scheduled.

Invariant: the optimized model is a file of its own beside the model's, and says from what, at which level and by which
onnxruntime it was made; it is made anew where any of that has changed. Loaded with optimizations off, as the strict
session does, its nodes are the kernels that run: no fusion is left to break.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from profiles.running import CannotRun
from remat_cli.errors import BadInput
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.onnx_graph.load import load
from remat_cli.runtime.optimized import LAYOUTS, SAYS, optimize
from remat_cli.runtime.session import quiet_runtime


def optimize_file(model: Path, level: str) -> Path:
    """The file of the model as onnxruntime optimizes it at that level: `m.all.onnx` of `m.onnx`."""
    destination = model.with_name(f"{model.name.removesuffix('.onnx')}.{level}.onnx")
    given, digest = load(model)
    origin = f"{digest} {level} onnxruntime {quiet_runtime().__version__}"
    if destination.is_file() and _origin_of(destination) == origin:
        return destination
    check_place(destination, FileKind.MODEL, model)
    try:
        made = optimize(given.SerializeToString(), model.resolve().parent, level, without=LAYOUTS)
    except CannotRun as refused:
        raise BadInput(f"onnxruntime cannot load {model}, so it cannot optimize it: {refused}") from refused
    made.metadata_props.add(key=SAYS, value=origin)
    write_whole(destination, made.SerializeToString(deterministic=True))
    return destination


def _origin_of(path: Path) -> str:
    said = {entry.key: entry.value for entry in onnx.load(path, load_external_data=False).metadata_props}
    return said.get(SAYS, "")
