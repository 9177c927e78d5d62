"""Reshapes that hide a tensor's shape from onnxruntime's planner, so that it does not keep a buffer idle for it.

Invariant: such a Reshape changes neither bytes nor shape and takes no memory but its few numbers.

With reuse of buffers on, as it is by default, a dead buffer is kept for a later tensor of the same shape, however far
off. No option inside a model turns that off, but a tensor whose shape the planner does not know gets no old buffer.
An op whose shapes are hidden reads an input through a Reshape whose shape is computed at run time: the constant plus a
zero that is summed from an empty slice of a graph input, which no optimizer folds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from onnx import TensorProto

from remat_cli.model import semantics
from remat_cli.model.graph import Graph
from remat_cli.planning.stock.guards import reading
from remat_cli.rewrite.copies import CopyNames, EmittedNode, Numbers
from remat_cli.rewrite.unread import SLICED


class HiddenShapes:
    """Hides shapes; `constants` are the initializers that they need."""

    def __init__(self, graph: Graph, names: CopyNames) -> None:
        self.graph = graph
        self.names = names
        self.weights = set(graph.weights)
        self.constants = Numbers(names, "__hidden_shape")
        self.before: list[EmittedNode] = []  # the nodes that compute the shapes, before all others
        self.shapes: dict[tuple[int, ...], str] = {}
        self.zero = ""
        self.made: set[str] = set()  # their results, whose shapes the model leaves out

    def hiding(self, steps: Sequence[EmittedNode], hidden: Collection[str]) -> list[EmittedNode]:
        """The steps, with such a Reshape before each that makes one of the values `hidden`."""
        source = next((name for name in self.graph.inputs if self._can_slice(name)), None)
        if source is None or not hidden:
            return list(steps)
        origin: dict[str, str] = {}
        base: dict[str, str] = {}  # a view -> its base, which is no view
        result: list[EmittedNode] = []
        for step in steps:
            origin |= step.origin
            if step.op is not None and any(True for _ in semantics.views(step.op)):
                base[step.node.output[0]] = base.get(step.node.input[0], step.node.input[0])
            if step.op is not None and any(name in hidden for name in step.node.output):
                through = {}
                for read in self._readable(step, origin):
                    hider = self._hider(base.get(read, read), read, origin.get(read, read), source)
                    result.append(hider)
                    through[read] = hider.made
                step = reading(step, through)
            result.append(step)
        return [*self.before, *self._read(result, base)]

    def _read(self, steps: Sequence[EmittedNode], views: Collection[str]) -> list[EmittedNode]:
        """The steps without views that nobody reads any more."""
        wanted, kept = set(self.graph.outputs), []
        for step in reversed(steps):
            if wanted.isdisjoint(step.node.output) and step.node.output[0] in views:
                continue
            wanted.update(step.reads)
            kept.append(step)
        return kept[::-1]

    def _can_slice(self, name: str) -> bool:
        value = self.graph.values[name]
        return bool(value.shape) and value.dtype in SLICED and value.dtype != TensorProto.STRING

    def _readable(self, step: EmittedNode, origin: dict[str, str]) -> list[str]:
        """The first computed input, and all computed inputs of its size; a weight's shape may have to be known."""
        inputs = (name for name in dict.fromkeys(step.node.input) if name and name not in self.weights)
        known = [name for name in inputs if origin.get(name, name) in self.graph.values]
        shapes = [self.graph.values[origin.get(name, name)].shape for name in known]
        return [name for name, shape in zip(known, shapes, strict=True) if shape == shapes[0]]

    def _hider(self, base: str, read: str, value: str, source: str) -> EmittedNode:
        """The Reshape that hides the shape. It reads the base of a view, because optimizers merge two Reshapes in a
        row."""
        shape = self._shape(self.graph.values[value].shape, source)
        hider = self.names.added("Reshape", [base, shape], f"{read}__hidden_shape", of=value, hides=True)
        self.made.add(hider.made)
        return hider

    def _shape(self, shape: tuple[int, ...], source: str) -> str:
        """A value that becomes `shape` when the model runs."""
        if shape not in self.shapes:
            zero = self.zero or self._make_zero(source)
            known = self.constants.name_of(shape)
            self.shapes[shape] = self._add("Add", [known, zero], 8 * max(len(shape), 1))
        return self.shapes[shape]

    def _make_zero(self, source: str) -> str:
        start = self.constants.name_of((0,))
        empty = self._add("Slice", [source, start, start], 0)
        whole = self._add("Cast", [empty], 0, to=TensorProto.INT64)
        self.zero = self._add("ReduceSum", [whole], 8, keepdims=0)
        return self.zero

    def _add(self, kind: str, inputs: list[str], size: int, **attributes: Any) -> str:
        self.before.append(
            self.names.added(kind, inputs, f"__{kind.lower()}", len(self.before) + 1, size=size, **attributes)
        )
        return self.before[-1].made
