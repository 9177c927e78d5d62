"""Nodes that make onnxruntime's default order follow the plan's, at no memory in either session type.

Invariant: every anchor's tensor is empty, so holding it costs nothing; removing the anchors leaves the graph as it was.

The default order starts from the nodes that nobody reads, and of a node's reads takes the one that stands last in the
file first. So the file ends in a chain of leaves in the plan's order, one for each place where the walk would stray:
from the last leaf the walk goes back to the first, and then along the chain. A leaf reads the one before it and a
token: an empty slice taken where the anchored value is computed, so that in file order the value itself is free to go
at once. A result that nobody reads is anchored in any case: it would stay to the end of the run.

No leaf can run before the one in front of it, and the shapes of leaves and tokens are told. For onnxruntime sorts the
nodes that are ready into a list, and looks at every tensor that was freed for one of the same shape: with thousands of
leaves that are ready early, or that are freed and never used again, a session takes minutes to make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import onnx

from remat_cli.model.graph import Graph
from remat_cli.planning.stock.pins import Pinning, Pins
from remat_cli.rewrite.copies import CopyNames, EmittedNode
from remat_cli.rewrite.unread import SLICED, can_be_sliced, empty_slice, names_read, to_slice, zero_of

STRING = onnx.TensorProto.STRING


def breaks(steps: Sequence[EmittedNode]) -> list[int]:
    """Where the walk may stray: after each step that the next one does not read.

    Of unvisited nodes the walk takes those that stand last in the file first. If each step reads the one before it, the
    walk from the last of them runs them all in order; so a leaf after each break makes the order exact.
    """
    found = []
    for index, step in enumerate(steps):
        following = steps[index + 1].reads if index + 1 < len(steps) else ()
        if not set(step.node.output).intersection(following):
            found.append(index)
    return found


def can_anchor(graph: Graph, step: EmittedNode, inner: Collection[str]) -> bool:
    """Whether an empty slice can be taken of something that the step makes."""
    return bool(can_be_sliced(graph, step)) and set(step.origin.values()).isdisjoint(inner)


def add_anchors(
    graph: Graph, steps: Sequence[EmittedNode], names: CopyNames, inner: Collection[str], pins: Pins, pinning: Pinning
) -> tuple[list[EmittedNode], list[onnx.TensorProto]]:
    """The steps with an anchor after every break, in file order, and the constants that they need.

    `inner`: values that must be left alone, lest their ops are not fused. `pins`: between steps, made by `pinning`.
    """
    zero = zero_of(names)
    pinned = {index for others in pins.values() for index in others}
    tokens_of: dict[int, str] = {}  # step -> an empty slice of what it makes
    origin: dict[str, str] = {}
    stray = {index for index in breaks(steps) if not set(steps[index].origin.values()).intersection(inner)}
    anchored = stray | pinned
    read = names_read(graph, steps)
    body: list[EmittedNode] = []
    chain = _Chain(graph, zero.name, names)
    for index, step in enumerate(steps):
        others = [tokens_of[one] for one in pins.get(index, ())]
        body += pinning.pinned(step, others, origin) if others else [step]
        origin |= step.origin
        for value in to_slice(graph, step, index in anchored, read):
            tokens = empty_slice(graph, step, value, zero.name, names)
            tokens_of[index] = tokens[-1].made
            body += [*tokens, *chain.flat(tokens[-1])]
    return [*body, *chain.leaves], [zero] if chain.leaves else []


class _Chain:
    """Leaves that are made of tokens, each after the one before it."""

    def __init__(self, graph: Graph, zero: str, names: CopyNames) -> None:
        self.zero, self.names = zero, names
        types = Counter(value.dtype for value in graph.values.values() if value.dtype in SLICED - {STRING})
        self.dtype = types.most_common(1)[0][0] if types else onnx.TensorProto.FLOAT  # most tokens need no Cast
        self.leaves: list[EmittedNode] = []

    def flat(self, token: EmittedNode) -> list[EmittedNode]:
        """The nodes that make the token fit the others, beside it; its leaf is added at the end."""
        assert token.told is not None
        (dtype, shape), read = token.told, token.made
        found, own = list[EmittedNode](), (self.dtype, (0,))
        if len(shape) > 1:
            found.append(self.names.added("Reshape", [read, self.zero], f"{read}__flat", told=(dtype, (0,))))
        if dtype != self.dtype:
            found.append(self.names.added("Cast", [_last(found, read)], f"{read}__cast", told=own, to=self.dtype))
        before = [self.leaves[-1].made] if self.leaves else []
        leaf = self.names.added("Concat", [*before, _last(found, read)], f"{read}__leaf", told=own, axis=0)
        self.leaves.append(leaf)
        return found


def _last(steps: Sequence[EmittedNode], otherwise: str) -> str:
    """What the last of the steps makes."""
    return steps[-1].made if steps else otherwise
