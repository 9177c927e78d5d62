"""Cuts tried on this machine: each kind of op whole, and in its pieces, by the runtime's own kernels.

Invariant: a way that is not named as another was run on random data, and every piece of its results had the bits of the
whole at its places. What cannot be tried is taken to differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from profiles.running import CannotRun, failures
from profiles.strict import strict_options
from remat_cli.model.graph import Graph, Op
from remat_cli.model.signatures import feeds_of, ops_of, small_constants
from remat_cli.onnx_graph.attributes import spelled
from remat_cli.pieces.cutting import Cut, Cutting
from remat_cli.pieces.regions import Links, Region
from remat_cli.pieces.table import Allowed, Kind, kind_of
from remat_cli.pieces.ways import Range, Way
from remat_cli.pieces.writing import Writer

LARGEST_OP_BYTES = 1 << 30  # bytes that an op reads and makes: beyond that it is not tried

ALIGNED = 256  # bytes: where memory of sessions begins

Known = dict[object, bool]  # what came of trials before


class BitTrials:
    """Bars ways whose pieces may give other bits than the whole. What was tried once is known from then on."""

    def __init__(self, allowed: Allowed) -> None:
        self.allowed, self.known = allowed, Known()

    def same(self, graph: Graph, region: Region) -> bool:
        """Whether all pieces of the region give the same bits; ways that do not are barred from now on."""
        wrong = set(_wrong(graph, region, self.known))
        self.allowed.barred.update(wrong)
        return not wrong


def _wrong(graph: Graph, region: Region, known: Known) -> Iterator[tuple[Kind, str]]:
    cutting = Cutting(Links(graph), region)
    cuts = [cutting.cuts(piece) for piece in range(cutting.pieces)]
    writer = Writer(graph, cutting, {op.name: 0 for op in cutting.ops})
    writer.write()
    nodes = {name: [part[0].node for part in parts] for name, parts in writer.parts.items()}
    stored = {tensor.name: tensor for tensor in writer.constants.values()}
    for op in cutting.ops:
        way, own = cutting.ways[op.name], [cut[op.name] for cut in cuts]
        key = (kind_of(graph, op), way.name, tuple(own))
        if key not in known:
            known[key] = _Trial(graph, op, way, stored).same(own, nodes[op.name])
        if not known[key]:
            yield kind_of(graph, op), way.name


class _Trial:
    """One op, and the nodes of its pieces, on the same numbers."""

    def __init__(self, graph: Graph, op: Op, way: Way, stored: Mapping[str, onnx.TensorProto]) -> None:
        self.graph, self.op, self.way = graph, op, way
        fixed = dict(small_constants(graph.model))
        own = {name: numpy_helper.from_array(fixed[name], name) for name in op.reads if name in fixed}
        self.stored = {**stored, **own}

    def same(self, cuts: Sequence[Cut], nodes: Sequence[onnx.NodeProto]) -> bool:
        sizes = sum(self.graph.values[name].bytes for name in (*self.op.reads, *self.op.writes))
        local = any(cut is not None and cut.local for cut in self.way.inputs)
        if self.way.total is not None or local or sizes > LARGEST_OP_BYTES:
            return False
        try:
            feeds = {name: _aligned(array) for name, array in self._feeds().items()}
            whole = self._run(self.op.node, feeds)
            alike = {self._kernel(cut, node): (cut, node) for cut, node in zip(cuts, nodes, strict=True)}
            return all(self._same_piece(whole, feeds, *pair) for pair in alike.values())
        except CannotRun:
            return False

    def _kernel(self, cut: Cut, node: onnx.NodeProto) -> object:
        """What a piece runs: pieces of one length do the same."""
        lengths = (part and part[1] - part[0] for part in (*cut.inputs, *cut.outputs))
        return spelled(node), tuple(lengths), tuple(name for name in node.input if name in self.stored)

    def _same_piece(self, whole: Mapping[int, Any], feeds: Mapping[str, Any], cut: Cut, node: onnx.NodeProto) -> bool:
        parts = {
            f"operand{place}": _part(feeds[name], along.axis if along else None, part)
            for place, (name, along, part) in enumerate(zip(self.op.inputs, self.way.inputs, cut.inputs))
            if name in feeds
        }
        renamed = deepcopy(node)
        renamed.input[:] = [
            f"operand{place}" if f"operand{place}" in parts else name for place, name in enumerate(node.input)
        ]
        made = self._run(renamed, parts)
        return all(
            self.way.outputs[place] is not None
            and (self._is_local(place) or made[place].tobytes() == self._at(whole[place], place, cut).tobytes())
            for place in made
        )

    def _is_local(self, place: int) -> bool:
        along = self.way.outputs[place]
        return along is not None and along.local

    def _at(self, whole: Any, place: int, cut: Cut) -> Any:
        along = self.way.outputs[place]
        return _part(whole, along.axis if along else None, cut.outputs[place])

    def _feeds(self) -> dict[str, Any]:
        """Numbers for what the op reads, valid for it."""
        names = [name for name in self.op.reads if name not in self.stored]
        graph = Graph(
            self.graph.path,
            "",
            _model(self.graph, self.op.node, self._infos(names), self._infos(self.op.writes), self.stored),
            (self.op,),
            self.graph.values,
            tuple(names),
            tuple(name for name in self.op.reads if name in self.stored),
            self.op.writes,
            opsets=self.graph.opsets,
        )
        return feeds_of(graph, ops_of(graph))

    def _run(self, node: onnx.NodeProto, feeds: Mapping[str, Any]) -> dict[int, Any]:
        """The node's results by place."""
        import onnxruntime

        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in feeds.items()
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        model = _model(self.graph, node, infos, results, self.stored)
        options = strict_options()
        options.log_severity_level = 3
        try:
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            found = session.run(None, dict(feeds))
        except failures() as error:
            raise CannotRun(str(error)) from error
        return dict(zip((place for place, name in enumerate(node.output) if name), found, strict=True))

    def _infos(self, names: Sequence[str]) -> list[onnx.ValueInfoProto]:
        values = self.graph.values
        return [helper.make_tensor_value_info(name, values[name].dtype, values[name].shape) for name in names]


def _part(array: Any, axis: int | None, part: Range | None) -> Any:
    """The places of an array that belong to a piece, in memory of their own as a session's."""
    if axis is None or part is None:
        return _aligned(array)
    return _aligned(array[(slice(None),) * axis + (slice(*part),)])


def _aligned(array: Any) -> Any:
    """A copy that begins where an allocator's memory would: kernels add up in an order that depends on it."""
    room = np.empty(array.nbytes + ALIGNED, np.uint8)
    start = -room.ctypes.data % ALIGNED
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _model(
    graph: Graph,
    node: onnx.NodeProto,
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    stored: Mapping[str, onnx.TensorProto],
) -> onnx.ModelProto:
    held = [stored[name] for name in dict.fromkeys(node.input) if name in stored]
    proto = helper.make_graph([node], "one", list(inputs), list(outputs), held)
    opsets = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    return helper.make_model(proto, opset_imports=opsets, ir_version=graph.model.ir_version or 10)
