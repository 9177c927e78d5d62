"""Fused first: onnxruntime optimizes a training graph offline, and what really runs is profiled and scheduled.

Invariant: the optimized model is a file of its own beside the model's, and says from what, at which level and by which
onnxruntime it was made; it is made anew where any of that has changed. Loaded with optimizations off, as the strict
session does, its nodes are the kernels that run: no fusion is left to break.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from profiles.device import quiet_runtime
from profiles.running import CannotRun
from remat_cli.errors import BadInput
from remat_cli.formats.files import stem_of, write_whole
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.ingest.shapes import size_of
from remat_cli.onnx_graph.attributes import said_in, say
from remat_cli.onnx_graph.load import load
from remat_cli.onnx_graph.stored import constant_tensor
from remat_cli.runtime.optimized import LAYOUTS, SAYS, optimize

MOST_GROWTH = 1.05  # times what the model stores: beyond that weights of 16 bits were stored in 32, which is done by
WIDENS = ("FuseFp16InitializerToFp32NodeTransformer",)  # and by folding, which then stops
FOLDED_BYTES = 65_536  # at values of so many


def optimize_file(model: Path, level: str) -> Path:
    """The file of the model as onnxruntime optimizes it at that level: `m.all.onnx` of `m.onnx`."""
    destination = model.with_name(f"{stem_of(model)}.{level}.onnx")
    given, digest = load(model)
    origin = _origin(digest, level)
    if destination.is_file() and said_in(onnx.load(destination, load_external_data=False)).get(SAYS) == origin:
        return destination
    check_place(destination, FileKind.MODEL, model)
    try:
        made = fuse(given, model.resolve().parent, digest, level)
    except CannotRun as refused:
        raise BadInput(f"onnxruntime cannot load {model}, so it cannot optimize it: {refused}") from refused
    write_whole(destination, made.SerializeToString(deterministic=True))
    return destination


def fuse(
    given: onnx.ModelProto, tensors: Path, digest: str, level: str = "all", without: Sequence[str] = LAYOUTS
) -> onnx.ModelProto:
    """The model as onnxruntime optimizes it, its external tensors in a folder; without what folding would make larger:
    weights of 16 bits, cast to 32 once and for all, are twice as large. Raises CannotRun."""
    content, before = given.SerializeToString(), _stored(given)
    made = optimize(content, tensors, level, without=without)
    if _stored(made) > MOST_GROWTH * before:
        less = optimize(content, tensors, level, without=(*without, *WIDENS), folded=FOLDED_BYTES)
        made = less if _stored(less) < _stored(made) else made
    say(made, {SAYS: _origin(digest, level)})
    return made


def _stored(model: onnx.ModelProto) -> int:
    """The bytes of all stored tensors in memory, those of Constants among them."""
    constants = [held for node in model.graph.node if (held := constant_tensor(node)) is not None]
    return sum(size_of(tensor.data_type, tuple(tensor.dims)) for tensor in (*model.graph.initializer, *constants))


def _origin(digest: str, level: str) -> str:
    return f"{digest} {level} onnxruntime {quiet_runtime().__version__}"
