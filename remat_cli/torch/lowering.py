"""Converts a joint graph to a scheduling problem: ops become nodes, storages become values.

Invariant: any order that solves the problem can be built as a forward and a backward graph that hold exactly what the
problem says. A necessary order of two ops is a value of no bytes: the later op reads the token of the earlier one.
Results of the forward pass that the caller holds live to the end: they are made once, or the boundary hands them over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from remat_cli.torch.bodies import held_inside
from remat_cli.torch.joint import Buffer, Joint, held_outputs
from remat_cli.torch.kinds import kind_of
from remat_cli.torch.private import HOLDS_TANGENTS
from remat_cli.torch.reading import is_plain
from solvers.faults import sound
from solvers.problem import Node, Problem

SCALAR_BYTES = 64  # in bytes: a tangent of this size or less is the loss's own, which the caller of `backward` holds
SMALL_PART = (
    8  # a forward output of less than this part of what its op makes is handed over, so that the op may run again
)


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one run of an op: nanoseconds, and the bytes of its workspace."""

    ns: int
    workspace: int = 0


Pricing = Callable[[fx.Node], Price]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A joint graph with its problem. `ops[i]` is what node i runs; None is the boundary between the passes.

    `checkpointed`: the same with blocks computed again as users ask by `torch.utils.checkpoint`, where a plan decides.
    """

    joint: Joint
    problem: Problem
    ops: tuple[fx.Node | None, ...]
    sizes: tuple[Any, ...]  # sizes of the values as the graph gives them, which may be symbolic
    checkpointed: Lowered | None = None

    @property
    def as_written(self) -> Lowered:
        """The step as the user wrote it, of whose peak a budget is a share."""
        return self.checkpointed or self

    @property
    def boundary(self) -> int:
        return self.ops.index(None)


@dataclass(slots=True)
class _Lowering:
    joint: Joint
    pricing: Pricing
    sizes: list[int] = field(default_factory=list)
    symbols: list[Any] = field(default_factory=list)
    value: dict[Buffer, int] = field(default_factory=dict)
    token: dict[fx.Node | None, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    ops: list[fx.Node | None] = field(default_factory=list)
    before: dict[fx.Node, fx.Node] = field(default_factory=dict)  # op -> the op that it must come after
    handed: list[int] = field(default_factory=list)
    # buffer -> the backward pass's own copy, where a user asks for one
    again: dict[Buffer, int] = field(default_factory=dict)
    place: dict[Buffer, int] = field(default_factory=dict)  # buffers that are always there, numbered for traffic

    def new(self, size: int, symbol: Any = 0) -> int:
        self.sizes.append(size)
        self.symbols.append(symbol)
        return len(self.sizes) - 1

    def values_of(self, node: fx.Node, late: bool) -> list[int]:
        """The values that must be in memory to read a node's result, and the tokens of the ops that it must come
        after."""
        if node in self.joint.views:
            return self.reads_of(node.all_input_nodes, late)
        value = {**self.value, **self.again} if late and self.again else self.value
        found = [value[buffer] for buffer in self.joint.buffers[node] if buffer in value]
        source = self.joint.parts.get(node, node)
        return [*found, self.token[source]] if source in self.token else found

    def reads_of(self, nodes: Iterable[fx.Node], late: bool = False) -> list[int]:
        return list(dict.fromkeys(value for node in nodes for value in self.values_of(node, late)))


def lower(joint: Joint, pricing: Pricing) -> Lowered:
    """The problem of a joint graph at these prices."""
    state = _Lowering(joint, pricing)
    state.place = {buffer: index for index, buffer in enumerate(joint.resident)}
    for chain in (joint.effects, joint.accesses):
        state.before.update(zip(chain[1:], chain, strict=False))
    ordered = {*joint.effects, *joint.accesses, *joint.pinned}
    kept, handed = _held(joint)
    first, rest = joint.sequence()
    for op in first:
        _add(state, op, ordered, op in kept)
    _add_boundary(state, [op for op in first if op in ordered], handed)
    for op in rest:
        for old in _missing(state, op):
            _add(state, old, ordered, False, again=True)
        _add(state, op, ordered, False)
    returned = [node for node in joint.backward_outputs if isinstance(node, fx.Node)]
    given = [node for node in joint.tangents if stays(sum(buffer.bytes for buffer in joint.buffers[node]))]
    outputs = [v for node in held_outputs(joint) for v in _values(state, node, set(handed))]
    outputs += [v for node in (*returned, *given) for v in _values(state, node, set())]
    problem = Problem(
        nodes=tuple(state.nodes),
        sizes=tuple(state.sizes),
        outputs=tuple(dict.fromkeys([*outputs, *state.handed])),
        resident=sum(buffer.bytes for buffer in joint.resident),
    )
    return Lowered(joint, sound(problem, "a joint graph's problem"), tuple(state.ops), tuple(state.symbols))


def stays(tangent: int) -> bool:
    """Whether a tangent of so many bytes is held until the backward pass ends, as a loss's own is by its caller."""
    return HOLDS_TANGENTS or tangent <= SCALAR_BYTES


def _values(state: _Lowering, node: fx.Node, without: set[Buffer]) -> list[int]:
    own = [buffer for buffer in state.joint.buffers[node] if buffer not in without]
    return [state.value[buffer] for buffer in own if buffer in state.value]


def _held(joint: Joint) -> tuple[set[fx.Node], list[Buffer]]:
    """The ops that run once because the caller holds their results, and the buffers that are handed over instead."""
    held = [buffer for node in held_outputs(joint) for buffer in joint.buffers[node]]
    kept: set[fx.Node] = set()
    handed = []
    for buffer in dict.fromkeys(held):
        if buffer.maker is None or buffer.maker not in joint.ops:
            continue
        whole = sum(made.bytes for made in joint.buffers[buffer.maker] if made.maker is buffer.maker)
        if buffer.bytes * SMALL_PART < whole:
            handed.append(buffer)
        else:
            kept.add(buffer.maker)
    returned = {b for node in joint.backward_outputs if isinstance(node, fx.Node) for b in joint.buffers[node]}
    for buffer in [b for b in handed if b in returned]:  # one block has both roles
        handed.remove(buffer)
        kept.add(buffer.maker)
    return kept, handed


def _missing(state: _Lowering, op: fx.Node) -> list[fx.Node]:
    """The ops that the backward pass must compute again before this one, in the order of the graph."""
    joint = state.joint
    wanted: set[fx.Node] = set()
    stack = [op]
    while stack:
        for node in stack.pop().all_input_nodes:
            source = joint.parts.get(node, node)
            if node in joint.views:
                stack.append(node)
            elif source in joint.again and source not in wanted and state.again.keys().isdisjoint(joint.buffers[node]):
                wanted.add(source)
                stack.append(source)
    return sorted(wanted, key=joint.ops.__getitem__)


def _add(state: _Lowering, op: fx.Node, ordered: set[fx.Node], kept: bool, again: bool = False) -> None:
    """Add a node for the op. `again`: a second node, whose results the backward pass reads."""
    joint = state.joint
    late = again or op in joint.backward
    reads = state.reads_of(op.all_input_nodes, None in state.token)
    if op in state.before:
        reads.append(state.token[state.before[op]])
    if again or (late and op in ordered):
        reads.append(state.token[None])
    writes = []
    known = state.again if again else state.value
    for buffer in joint.buffers[op]:
        if buffer.maker is op:
            known[buffer] = state.new(buffer.bytes, buffer.size)
            writes.append(known[buffer])
    if op in ordered or is_plain(op) or not writes:
        state.token[op] = state.new(0)
        writes.append(state.token[op])
    price = state.pricing(op)
    resident = {b: b.bytes for node in op.all_input_nodes for b in joint.buffers[node] if b.maker is None}
    node = Node(
        cost=price.ns,
        reads=tuple(dict.fromkeys(reads)),
        writes=tuple(writes),
        workspace=price.workspace + held_inside(op),
        once=op in ordered or kept or is_plain(op),
        backward=None in state.token,
        kind=kind_of(op),
        takes=tuple((state.place[buffer], size) for buffer, size in resident.items()),
    )
    state.nodes.append(node)
    state.ops.append(op)


def _add_boundary(state: _Lowering, ordered: list[fx.Node], handed: list[Buffer]) -> None:
    """Add the boundary between the passes: the caller takes the forward outputs and brings the tangents."""
    joint = state.joint
    reads = state.reads_of([node for node in joint.forward_outputs if isinstance(node, fx.Node)])
    reads += [state.token[op] for op in ordered if op in state.token]
    writes, over = [], []
    for tangent in joint.tangents:
        for buffer in joint.buffers[tangent]:
            state.value[buffer] = state.new(buffer.bytes, buffer.size)
            writes.append(state.value[buffer])
    for buffer in handed:
        new = state.new(buffer.bytes, buffer.size)
        over.append((new, state.value[buffer]))
        state.handed.append(new)
        writes.append(new)
    state.token[None] = state.new(0)
    writes.append(state.token[None])
    state.nodes.append(Node(0, tuple(dict.fromkeys(reads)), tuple(writes), once=True, overwrites=tuple(over)))
    state.ops.append(None)
