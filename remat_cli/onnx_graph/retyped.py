"""A model with numbers of another type.

Invariant: weights keep their values, as near as the type has them; what says which type a node makes says the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy

import onnx
from onnx import helper, numpy_helper

from remat_cli.onnx_graph.stored import bring_in, tensors
from remat_cli.onnx_graph.walk import nodes_within, subgraphs

TYPED = ("to", "dtype", "output_dtype")  # attributes that say which type a node makes


def retyped(model: onnx.ModelProto, kinds: Mapping[int, int]) -> onnx.ModelProto:
    """The model with each type in the place of another; values in between say none."""
    made = deepcopy(model)
    for tensor in tensors(made):
        if tensor.data_type in kinds:
            bring_in(tensor)
            wanted = helper.tensor_dtype_to_np_dtype(kinds[tensor.data_type])
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(wanted), tensor.name))
    for graph in _graphs(made.graph):
        del graph.value_info[:]
        for kind in (value.type.tensor_type for value in (*graph.input, *graph.output)):
            if kind.elem_type in kinds:
                kind.elem_type = kinds[kind.elem_type]
    for node in nodes_within((*made.graph.node, *(node for one in made.functions for node in one.node))):
        for attribute in node.attribute:
            if attribute.name in TYPED:
                attribute.i = kinds.get(attribute.i, attribute.i)
    return made


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)
