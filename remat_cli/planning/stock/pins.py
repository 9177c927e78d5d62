"""Reads of inputs that come before the updates of these inputs, in whatever order a session runs its nodes.

Invariant: in a pinned model each op that writes over an input is made from all other ops that read the input as it was,
so that no executor can run it before one of them. A pin changes neither bytes nor shape.

An op that updates an input reads one of its operands through a Reshape. The shape is computed at run time: the known
one plus zeros, each summed from an empty slice of what a reader of the input computes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import onnx
from onnx import TensorProto

from remat_cli.model import semantics
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.walk import captures, edges
from remat_cli.planning.stock.guards import reading
from remat_cli.rewrite.copies import CopyNames, EmittedNode, Numbers

MOVERS = {"Cast", "Transpose"}  # what these make of an input, a fused kernel may make of it by itself, and later
Pins = dict[int, list[int]]  # for each step that updates an input, the steps that it must be made from besides


def find_pins(graph: Graph, steps: Sequence[EmittedNode], can_pin: Callable[[EmittedNode], bool]) -> Pins:
    """The steps to pin each update to. A reader that `can_pin` refuses is pinned by what is made from it."""
    if not graph.in_place:
        return {}
    seen = _Reads(graph, [step.node for step in steps], [step.reads for step in steps], MOVERS)
    ancestors: list[int] = []
    found: Pins = {}
    for index, sources in enumerate(seen.sources):
        behind = _union(ancestors, sources)
        for reader in seen.before_update(index):
            fused = steps[reader].node.op_type in MOVERS  # by what reads it, which then is not made from it
            if reader < index and (fused or not behind >> reader & 1):
                made = (one for one in range(reader, index) if one == reader or ancestors[one] >> reader & 1)
                pin = next((one for one in made if can_pin(steps[one])), None)
                if pin is not None and pin not in found.get(index, ()):
                    found.setdefault(index, []).append(pin)
                    behind |= ancestors[pin] | 1 << pin
        ancestors.append(behind)
    return found


def find_unpinned(graph: Graph, made: onnx.GraphProto) -> frozenset[str]:
    """The outputs in the places of inputs that a session could write too early, if these are its nodes.

    `made`: the model of a plan of `graph`, as it is or as optimizers leave it.
    """
    if not graph.in_place:
        return frozenset()
    nodes = list(made.node)
    seen = _Reads(graph, nodes, [(*node.input, *captures(node)) for node in nodes])
    ancestors: list[int] = []
    for sources in seen.sources:
        ancestors.append(_union(ancestors, sources))
    writer = {name: index for index, node in enumerate(nodes) for name in node.output}
    ops = {name: op.node for op in graph.ops for name in op.outputs}
    found = set()
    for output, old in graph.in_place.items():
        index = writer.get(output, -1)
        late = (one for one in seen.readers.get(old, ()) if one != index and not ancestors[index] >> one & 1)
        if index < 0 or any(True for _ in late) or not seen.alike(nodes[index], ops[output], old):
            found.add(output)
    return frozenset(found)


def find_ops_behind(made: onnx.GraphProto, outputs: Collection[str]) -> frozenset[str]:
    """The names of the nodes that each of the outputs is made from."""
    ancestors: list[int] = []
    for sources in edges([(*node.input, *captures(node)) for node in made.node], [node.output for node in made.node]):
        ancestors.append(_union(ancestors, sources))
    found = (1 << len(ancestors)) - 1
    for index, node in enumerate(made.node):
        if not set(outputs).isdisjoint(node.output):
            found &= ancestors[index]
    return frozenset(node.name for index, node in enumerate(made.node) if found >> index & 1)


class _Reads:
    """Which nodes read the inputs that are updated. `sources`: for each node the nodes that it reads.

    `movers`: ops of which the readers count as readers of what they move.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Sequence[onnx.NodeProto],
        reads: Sequence[Sequence[str]],
        movers: Collection[str] = (),
    ) -> None:
        self.graph, self.nodes = graph, nodes
        self.sources = edges(reads, [node.output for node in nodes])
        self.behind = {old: {old} for old in graph.in_place.values()}  # a value -> the inputs in whose memory it lies
        self.readers: dict[str, list[int]] = {}  # input -> nodes that read its bytes, directly or through views
        outputs = set(graph.outputs)
        for index, node in enumerate(nodes):
            views = [(node.output[out], node.input[into]) for out, into in semantics.views_of(node)]
            if (views and outputs.isdisjoint(node.output)) or _reads_no_bytes(node):
                read = set[str]()
            else:
                read = {old for name in reads[index] for old in self.behind.get(name, ())}
            for name in read:
                self.readers.setdefault(name, []).append(index)
            moved = [(node.output[0], node.input[0])] if node.op_type in movers and not node.domain else []
            for made, base in (*views, *moved):
                if base in self.behind and made not in graph.in_place:
                    self.behind[made] = self.behind[base]

    def before_update(self, index: int) -> list[int]:
        """The nodes that must run before this one, the last first, because it updates what they read."""
        olds = {self.graph.in_place[name] for name in self.nodes[index].output if name in self.graph.in_place}
        return sorted({one for old in olds for one in self.readers.get(old, ())} - {index}, reverse=True)

    def alike(self, node: onnx.NodeProto, asked: onnx.NodeProto, old: str) -> bool:
        """Whether the node reads the input, if at all, where the op does whose output may take its place."""
        places = [place for place, name in enumerate(node.input) if old in self.behind.get(name, ())]
        if old in captures(node):
            return False
        same = (node.op_type, node.domain) == (asked.op_type, asked.domain)
        return not places or (same and all(asked.input[place] == old for place in places))


def _reads_no_bytes(node: onnx.NodeProto) -> bool:
    """Whether it asks only for a shape, or takes an empty slice."""
    empty = node.op_type == "Slice" and len(node.input) > 2 and node.input[1] == node.input[2]
    return node.domain in semantics.STANDARD_NAMES and (empty or node.op_type in ("Shape", "Size"))


def _union(ancestors: Sequence[int], sources: Collection[int]) -> int:
    """All that a node is made from, a bit each."""
    found = 0
    for source in sources:
        found |= ancestors[source] | 1 << source
    return found


class Pinning:
    """Makes the nodes that pin updates; `constants` are the initializers that they need."""

    def __init__(self, graph: Graph, names: CopyNames, inner: Collection[str] = ()) -> None:
        self.graph = graph
        self.names = names
        self.inner = inner
        self.constants = Numbers(names, "__pin_shape")
        self.zeros: dict[str, str] = {}  # token -> the zero that is summed from it
        self.made: set[str] = set()  # what is read through pins, whose shapes the model leaves out

    def pinned(self, step: EmittedNode, tokens: Sequence[str], origin: Mapping[str, str]) -> list[EmittedNode]:
        """The step, after the nodes by which it is made from these empty slices too."""
        read = self._operand(step, origin)
        if read is None:
            return [step]
        value = origin.get(read, read)
        size = 8 * max(len(self.graph.values[value].shape), 1)
        shape, result = self.constants.name_of(self.graph.values[value].shape), []
        for token in tokens:
            if token not in self.zeros:
                whole = self.names.added("Cast", [token], "__pin_cast", to=TensorProto.INT64)
                summed = self.names.added("ReduceSum", [whole.made], "__pin_reducesum", size=8, keepdims=0)
                self.zeros[token] = summed.made
                result += [whole, summed]
            result.append(self.names.added("Add", [shape, self.zeros[token]], "__pin_add", size=size))
            shape = result[-1].made
        pin = self.names.added("Reshape", [read, shape], f"{read}__pin", of=value, hides=True)
        self.made.add(pin.made)
        return [*result, pin, reading(step, {read: pin.made})]

    def _operand(self, step: EmittedNode, origin: Mapping[str, str]) -> str | None:
        """What is read through the pin: if possible what an op computes, and no constant, which may be packed."""
        known = [name for name in dict.fromkeys(step.node.input) if origin.get(name, name) in self.graph.values]
        usable = [name for name in known if origin.get(name, name) not in self.inner]
        weights = set(self.graph.weights)
        return min(usable, key=lambda name: (name in weights, name not in origin), default=None)
