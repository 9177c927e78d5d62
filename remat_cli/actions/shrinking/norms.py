"""Normalization of whole images written out as sums and pointwise ops, which can run in pieces by rows; its one kernel
reads a whole image, and makes a whole one.

Invariant: results are the same but for the order of sums. Groups of channels are taken where they stand, so that rows
stay rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from remat_cli.model.graph import Graph, Op
from remat_cli.onnx_graph.names import Names
from remat_cli.pieces.regions import Links

AXES_AS_INPUT = 18  # the opset since which it is so
SHARE = 0.25  # of the widest value: smaller ones stay as they are


@dataclass(frozen=True, slots=True)
class _Norm:
    """`source`: what is normalized, `shape`: with its groups apart, `made`: the result, of the source's shape. `gone`:
    ops that are no longer needed."""

    op: Op
    source: str
    shape: tuple[int, ...]
    made: str
    gone: tuple[str, ...]


def written_out(graph: Graph) -> onnx.ModelProto | None:
    """The model with wide ones written out; None where there are none."""
    widest = max((graph.values[name].bytes for op in graph.ops for name in op.writes), default=0)
    found = {norm.op.name: norm for norm in _norms(graph, SHARE * widest)}
    if not found:
        return None
    gone = {name for norm in found.values() for name in norm.gone}
    model = deepcopy(graph.model)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    names = Names({*graph.values, *(node.name for node in nodes)})
    for node in nodes:
        if node.name in found:
            made, constants = _Writing(graph, names).nodes(found[node.name])
            model.graph.node.extend(made)
            model.graph.initializer.extend(constants)
        elif node.name not in gone:
            model.graph.node.append(node)
    return model


def _norms(graph: Graph, wide: float) -> Iterator[_Norm]:
    links = Links(graph)
    for op in graph.ops:
        if op.op_type != "InstanceNormalization" or op.domain:
            continue
        value = graph.values[op.inputs[0]]
        if value.dtype != TensorProto.FLOAT or value.bytes < wide or value.bytes == 0:
            continue
        before, after = links.writer.get(value.name), links.readers.get(op.outputs[0], [])
        if before is not None and before.op_type == "Reshape" and [one.op_type for one in after] == ["Reshape"]:
            whole, made = graph.values[before.inputs[0]], after[0].outputs[0]
            shape = _in_groups(whole.shape, value.shape)
            if shape and whole.shape == graph.values[made].shape and op.outputs[0] not in graph.outputs:
                gone = [after[0].name] + ([before.name] if len(links.readers[value.name]) == 1 else [])
                yield _Norm(op, whole.name, shape, made, tuple(gone))
                continue
        yield _Norm(op, value.name, value.shape, op.outputs[0], ())


def _in_groups(whole: tuple[int, ...], flat: tuple[int, ...]) -> tuple[int, ...]:
    """(images, groups, channels of one, places) of an image whose groups were made flat; nothing for other shapes."""
    fits = len(whole) > 2 and whole[0] == flat[0] and whole[1] % flat[1] == 0 and prod(whole) == prod(flat)
    return (whole[0], flat[1], whole[1] // flat[1], *whole[2:]) if fits else ()


class _Writing:
    """The nodes in the place of one. `constants`: what they read besides."""

    def __init__(self, graph: Graph, names: Names) -> None:
        self.names, self.opset = names, graph.opset()
        self.values = graph.values
        self.made: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def nodes(self, norm: _Norm) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        apart = norm.shape != self.values[norm.source].shape
        narrow = (1, norm.shape[1], *[1] * (len(norm.shape) - 2))
        x = self._reshaped(norm.source, norm.shape) if apart else norm.source
        mean = self._mean(x, norm.shape)
        off = self._add("Sub", x, mean)
        spread = self._mean(self._add("Mul", off, off), norm.shape)
        epsilon = next((one.f for one in norm.op.node.attribute if one.name == "epsilon"), 1e-5)
        sigma = self._add("Sqrt", self._add("Add", spread, self._constant(np.float32(epsilon))))
        factor = self._add("Div", self._reshaped(norm.op.inputs[1], narrow), sigma)
        scaled = self._add("Mul", off, factor)
        bias = self._reshaped(norm.op.inputs[2], narrow)
        if not apart:
            self._add("Add", scaled, bias, made=norm.made)
        else:
            self._reshaped(self._add("Add", scaled, bias), self.values[norm.source].shape, norm.made)
        return self.made, self.constants

    def _add(self, kind: str, *reads: str, made: str = "", **attributes: object) -> str:
        name = self.names.fresh(f"{reads[0]}/{kind}")
        made = made or name
        self.made.append(helper.make_node(kind, reads, [made], name=self.names.fresh(f"{name}/op"), **attributes))
        return made

    def _mean(self, x: str, shape: Sequence[int]) -> str:
        axes = list(range(2, len(shape)))
        if self.opset < AXES_AS_INPUT:
            return self._add("ReduceMean", x, axes=axes, keepdims=1)
        return self._add("ReduceMean", x, self._constant(np.array(axes, np.int64)), keepdims=1)

    def _reshaped(self, x: str, shape: Sequence[int], made: str = "") -> str:
        return self._add("Reshape", x, self._constant(np.array(shape, np.int64)), made=made)

    def _constant(self, array: np.ndarray | np.float32) -> str:
        name = self.names.fresh("norm/constant")
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name
