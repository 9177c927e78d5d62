"""A run in float64 as the reference, and the distances of the original and of the model in pieces from it.

The witness is ONNX's reference evaluator, which shares no code with the runtime. Invariant: where it cannot tell, there
is no figure: for random ops, for data in other files, and for more work than it does in about a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference.op_run import OpRun

from profiles.flops import flops
from remat_cli.model.graph import Graph
from remat_cli.model.semantics import runs_once
from remat_cli.model.signatures import ops_of

FLOPS_MOST = 2e10
VALUES_BYTES_MOST = 1 << 29
LOOPS_ELEMENTS_MOST = 1 << 20  # in ops that the reference does element by element
LOOPING = (*("AveragePool", "GatherND", "LpPool", "MaxPool", "MaxUnpool", "ScatterND"),)
FACTOR_MOST = 2.0  # times as far from float64 as the original
ROUNDING = 1e-6  # share of an output's norm: a smaller error counts as none
CANNOT = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
ADDING = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@dataclass(frozen=True, slots=True)
class Exactness:
    """The relative errors of an output of the original and of the rewritten model, by the norm of the float64
    output."""

    output: str
    before: float
    after: float

    @property
    def as_good(self) -> bool:
        return self.after <= FACTOR_MOST * self.before + ROUNDING


def run_in_float64(graph: Graph, feeds: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outputs by name; None where nobody can tell what is right."""
    if _too_much(graph) or any(map(runs_once, graph.ops)):
        return None
    from onnx.reference import ReferenceEvaluator  # late: it loads every op's implementation

    wide = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feeds.items()}
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(widen(graph.model), new_ops=OPS)
            return dict(zip(evaluator.output_names, evaluator.run(None, wide), strict=True))
    except CANNOT:  # the reference has no kernel for the op, or a wrong one
        return None


def _too_much(graph: Graph) -> bool:
    if any(tensor.data_location == TensorProto.EXTERNAL for tensor in graph.model.graph.initializer):
        return True
    work = sum(flops(signature) or 0 for signature in ops_of(graph).signatures.values())
    size = sum(graph.values[name].bytes for op in graph.ops for name in op.writes)
    looped = (name for op in graph.ops if op.op_type in LOOPING for name in op.writes)
    loops = sum(prod(graph.values[name].shape) for name in looped)
    return work > FLOPS_MOST or size > VALUES_BYTES_MOST or loops > LOOPS_ELEMENTS_MOST


def judge(
    names: Sequence[str], right: Mapping[str, Any], before: Sequence[Any], after: Sequence[Any]
) -> tuple[Exactness, ...]:
    """The relative errors of both models, for each output of real numbers."""
    return tuple(_judge(names, right, before, after))


def _judge(
    names: Sequence[str], right: Mapping[str, Any], before: Sequence[Any], after: Sequence[Any]
) -> Iterator[Exactness]:
    for name, old, new in zip(names, before, after, strict=True):
        true = np.asarray(right[name])
        if true.dtype.kind == "f" and true.shape == old.shape == new.shape and _finite(true, old, new):
            size = float(np.linalg.norm(true.ravel())) or 1.0
            old_off, new_off = (float(np.linalg.norm((one - true).ravel())) / size for one in (old, new))
            yield Exactness(name, old_off, new_off)


def _finite(*arrays: Any) -> bool:
    """Whether all numbers are finite. Differences of others mean nothing; the comparison checks their places."""
    return all(np.isfinite(array).all() for array in arrays)


def widen(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float64 in the place of float32."""
    wide = deepcopy(model)
    del wide.graph.value_info[:]
    stored = list(wide.graph.initializer)
    stored += [attribute.t for node in wide.graph.node for attribute in node.attribute if attribute.HasField("t")]
    for tensor in stored:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in wide.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    return wide


class GatherElements(OpRun):  # type: ignore[misc]
    """The reference's own takes no more than 64 places."""

    op_domain = ""

    def _run(self, data: Any, indices: Any, axis: int | None = None) -> tuple[Any]:
        return (data[_places(data, indices, axis or 0)],)


class ScatterElements(OpRun):  # type: ignore[misc]
    """The reference's own takes a second for every few hundred thousand elements."""

    op_domain = ""

    def _run(
        self, data: Any, indices: Any, updates: Any, axis: int | None = None, reduction: str | None = None
    ) -> tuple[Any]:
        found, places = np.copy(data), _places(data, indices, axis or 0)
        if reduction in ADDING:
            ADDING[reduction].at(found, places, updates)
        else:
            found[places] = updates
        return (found,)


def _places(data: Any, indices: Any, axis: int) -> tuple[Any, ...]:
    """Where each index points: along the axis as it says, along the others at its own place."""
    places = list(np.ogrid[tuple(map(slice, indices.shape))])
    places[axis] = np.where(indices < 0, indices + data.shape[axis], indices)
    return tuple(places)


OPS = [GatherElements, ScatterElements]
