"""Reads ONNX: any training graph becomes a `Graph` with unique names, a runnable order and static sizes.

Invariant: a runtime finds in the model what its `Graph` says. What cannot be known is an error that names the value,
the op that makes it and what to pass. Weights kept outside the file are never read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from remat_cli.errors import BadInput
from remat_cli.ingest.expand import expand, give_misread_defaults
from remat_cli.ingest.phases import backward_ops
from remat_cli.ingest.shapes import UnknownSize, infer
from remat_cli.limits import TENSOR_BYTES
from remat_cli.model.graph import Graph, Op, Value
from remat_cli.onnx_graph.dims import bind, refuse_unused
from remat_cli.onnx_graph.load import IN_MEMORY, content_of, load, parse_model
from remat_cli.onnx_graph.names import name_nodes, sort_nodes
from remat_cli.onnx_graph.opsets import OWN_OPSET, opset_of, upgrade
from remat_cli.onnx_graph.stored import leave_beside
from remat_cli.onnx_graph.walk import captures, names_stored


def ingest(given: Path | onnx.ModelProto, dims: Mapping[str, int] | None = None) -> Graph:
    """Read the model, which may be in memory, its symbolic dimensions bound by `dims`."""
    if not isinstance(given, Path):
        return ingest_content(content_of(given), dims)
    model, digest = load(given)
    if opset_of(model) < OWN_OPSET:
        leave_beside(model, given)
    return graph_of(model, given, digest, dims or {})


def ingest_content(content: bytes, dims: Mapping[str, int] | None = None) -> Graph:
    """Read a model that is not in a file."""
    return graph_of(parse_model(content, IN_MEMORY), IN_MEMORY, hashlib.sha256(content).hexdigest(), dims or {})


def graph_of(model: onnx.ModelProto, path: Path, digest: str = "", dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of a model in memory, which may be changed; `path` is what errors and plans call it."""
    told, given = len(model.graph.value_info), model
    model = _modern(model, path)
    bound = bind(model, dims or {}, path)
    sort_nodes(model.graph, path)
    written_out = expand(model, path)
    expanded = written_out is not given
    if expanded:
        model = written_out
        sort_nodes(model.graph, path)
    give_misread_defaults(model)
    proto = model.graph
    name_nodes(proto)
    try:
        found = infer(model, path, dims or {})
    except UnknownSize as unknown:
        unknown.path, unknown.model = path, model
        raise
    values = found.values
    refuse_unused(model, dims or {}, {*bound, *found.needed}, path)
    constants = (node.output[0] for node in proto.node if node.op_type == "Constant")
    weights = dict.fromkeys((*names_stored(proto), *constants))
    ops = tuple(_op(node) for node in proto.node if node.op_type != "Constant")
    outputs = tuple(dict.fromkeys(value.name for value in proto.output))
    if not ops:
        raise BadInput(f"{path}: the graph has no ops to schedule")
    _refuse_huge(values, path)
    late = backward_ops(ops, outputs, values)
    return Graph(
        path=path,
        sha256=digest,
        model=model,
        ops=tuple(replace(op, backward=True) if op.name in late else op for op in ops),
        values=values,
        inputs=tuple(value.name for value in proto.input if value.name not in weights),
        weights=tuple(weights),
        outputs=outputs,
        dims=dict(dims or {}),
        opsets={entry.domain: entry.version for entry in model.opset_import},
        expanded=expanded,
        loose=found.loose,
        by_data=found.by_data,
        told=told,
    )


def _modern(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The model with ops of an opset that is understood; of an older one it is written out anew."""
    if opset_of(model) >= OWN_OPSET:
        return model
    try:
        return upgrade(model)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _refuse_huge(values: Mapping[str, Value], path: Path) -> None:
    for name, value in values.items():
        if value.bytes > TENSOR_BYTES:
            raise BadInput(f"{path}: value {name!r} would have {value.bytes} bytes, of which no machine has that many")


def _op(node: onnx.NodeProto) -> Op:
    return Op(
        name=node.name,
        op_type=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        node=node,
        captures=captures(node),
    )
