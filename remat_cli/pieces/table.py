"""The table of what can be cut: a row an op. What has no row is never cut.

Invariant: nothing of an op is said elsewhere but how its pieces are written (`writing.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from remat_cli.model.graph import Graph, Op
from remat_cli.model.signatures import small_constants
from remat_cli.onnx_graph.attributes import spelled
from remat_cli.pieces.rows import along_axes, attention, places, pointwise, products, windows
from remat_cli.pieces.ways import Call, Row, Way

Kind = Hashable  # of ops that are the same but for their names

TABLE: Mapping[tuple[str, str], Row] = {
    **pointwise.ROWS,
    **products.ROWS,
    **windows.ROWS,
    **along_axes.ROWS,
    **attention.ROWS,
    **places.ROWS,
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """Which ways may be taken. `exact`: only those whose pieces give the same bits. `barred`: ways, by the kind of op
    and their name, that did not when they were tried; who tries them adds to it."""

    exact: bool = False
    barred: set[tuple[Kind, str]] = field(default_factory=set)


ANY = Allowed()


class Table:
    """The ways of each op of a graph that are allowed."""

    def __init__(self, graph: Graph, allowed: Allowed = ANY) -> None:
        self.graph, self.allowed = graph, allowed
        self.constants = dict(small_constants(graph.model))
        self.known: dict[str, tuple[Way, ...]] = {}

    def ways(self, op: Op) -> tuple[Way, ...]:
        """How the op can be cut; nothing for one whose sizes depend on data, or that holds subgraphs."""
        if op.name not in self.known:
            self.known[op.name] = self._ways(op)
        return self.known[op.name]

    def _ways(self, op: Op) -> tuple[Way, ...]:
        row = TABLE.get((op.domain, op.op_type))
        touched = (*op.reads, *op.writes)
        if row is None or op.captures or not op.writes or not self.graph.loose.isdisjoint(touched):
            return ()
        found = tuple(way for way in row(self.call(op)) if way.exact or not self.allowed.exact)
        if not self.allowed.barred:
            return found
        kind = kind_of(self.graph, op)
        return tuple(way for way in found if (kind, way.name) not in self.allowed.barred)

    def call(self, op: Op) -> Call:
        held = {place: self.constants[name] for place, name in enumerate(op.inputs) if name in self.constants}
        dtypes = tuple(self.graph.values[name].dtype if name else 0 for name in op.inputs)
        return Call(op, self._shapes(op.inputs), self._shapes(op.outputs), dtypes, held, self.graph.opset(op.domain))

    def _shapes(self, names: tuple[str, ...]) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(self.graph.values[name].shape if name else None for name in names)


def kind_of(graph: Graph, op: Op) -> Kind:
    """What op it is, with its attributes and the types and shapes of its operands."""
    operands = tuple((graph.values[name].dtype, graph.values[name].shape) if name else None for name in op.inputs)
    return op.domain, op.op_type, spelled(op.node), operands, tuple(map(bool, op.outputs))
