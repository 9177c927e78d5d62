"""What a model gives where it is computed otherwise: by this it is judged itself, and other ways of running it.

Invariant: weights and inputs keep their numbers. A model of 16 bits is computed in 32, others by the plainest kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from remat_cli.actions.shrinking.child import LEAN, STRICT
from remat_cli.actions.shrinking.ways import SessionOf
from remat_cli.formats import arrays
from remat_cli.formats.files import write_whole
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.stored import bring_in, tensors
from remat_cli.onnx_graph.walk import nodes_within, subgraphs

WIDE, WIDE_FEEDS = "wide.onnx", "wide.npz"
SHORT = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
TYPED = ("to", "dtype", "output_dtype")  # attributes that say which type a node makes


def in_32_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float in the place of both types of 16 bits."""
    wide = deepcopy(model)
    for tensor in tensors(wide):
        if tensor.data_type in SHORT:
            bring_in(tensor)
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name))
    for graph in _graphs(wide.graph):
        del graph.value_info[:]
        for value in (*graph.input, *graph.output):
            kind = value.type.tensor_type
            kind.elem_type = TensorProto.FLOAT if kind.elem_type in SHORT else kind.elem_type
    for node in nodes_within((*wide.graph.node, *(node for one in wide.functions for node in one.node))):
        for attribute in node.attribute:
            if attribute.name in TYPED and attribute.i in SHORT:
                attribute.i = TensorProto.FLOAT
    return wide


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)


def witness(given: Path, graph: Graph | None, feeds: Path, folder: Path) -> SessionOf:
    """What says how a model rounds."""
    if graph is None or not any(graph.values[name].dtype in SHORT for op in graph.ops for name in op.writes):
        return SessionOf(given, STRICT)
    model, inputs = folder / WIDE, folder / WIDE_FEEDS
    short = ("float16", "bfloat16")
    held = arrays.read(feeds)
    arrays.write({n: one.astype(np.float32) if one.dtype.name in short else one for n, one in held.items()}, inputs)
    write_whole(model, in_32_bits(graph.model).SerializeToString())
    return SessionOf(model, LEAN, feeds=inputs)
