"""A run in float64 as the reference, and the distances of the original and of the model in pieces from it.

The witness is ONNX's reference evaluator, which shares no code with the runtime. Invariant: where it cannot tell, there
is no figure: for random ops, for data in other files, and for more work than it does in about a minute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto

from profiles.flops import flops
from remat_cli.model.graph import Graph
from remat_cli.model.semantics import runs_once
from remat_cli.model.signatures import ops_of
from remat_cli.onnx_graph.reference_ops import OPS
from remat_cli.onnx_graph.retyped import retyped

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
            evaluator = ReferenceEvaluator(retyped(graph.model, {TensorProto.FLOAT: TensorProto.DOUBLE}), new_ops=OPS)
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
) -> Iterator[Exactness]:
    """The relative errors of both models, for each output of real numbers."""
    for name, old, new in zip(names, before, after, strict=True):
        true = np.asarray(right[name])
        if true.dtype.kind == "f" and true.shape == old.shape == new.shape and _finite(true, old, new):
            size = float(np.linalg.norm(true.ravel())) or 1.0
            old_off, new_off = (float(np.linalg.norm((one - true).ravel())) / size for one in (old, new))
            yield Exactness(name, old_off, new_off)


def _finite(*arrays: Any) -> bool:
    """Whether all numbers are finite. Differences of others mean nothing; the comparison checks their places."""
    return all(np.isfinite(array).all() for array in arrays)
