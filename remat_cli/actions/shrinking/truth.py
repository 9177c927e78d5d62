"""What a model gives where it is computed otherwise: by this it is judged itself, and other ways of running it.

Invariant: weights and inputs keep their numbers. A model of 16 bits is computed in 32, others by the plainest kernels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto

from remat_cli.checking.child import LEAN, STRICT, UserProgram
from remat_cli.formats import arrays
from remat_cli.formats.files import write_whole
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.retyped import retyped

WIDE, WIDE_FEEDS = "wide.onnx", "wide.npz"
SHORT = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def witness(given: Path, graph: Graph | None, feeds: Path, folder: Path) -> UserProgram:
    """What says how a model rounds."""
    if graph is None or not any(graph.values[name].dtype in SHORT for op in graph.ops for name in op.writes):
        return UserProgram(given, STRICT)
    model, inputs = folder / WIDE, folder / WIDE_FEEDS
    short = ("float16", "bfloat16")
    held = arrays.read(feeds)
    arrays.write({n: one.astype(np.float32) if one.dtype.name in short else one for n, one in held.items()}, inputs)
    write_whole(model, retyped(graph.model, dict.fromkeys(SHORT, TensorProto.FLOAT)).SerializeToString())
    return UserProgram(model, LEAN, feeds=inputs)
