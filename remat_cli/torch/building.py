"""From an order of computes to a forward and a backward graph: one call for each compute, in the order of the plan.

Invariant: every call of the new graphs is a copy of one in the joint graph, over copies of the same arguments. What the
backward pass takes from the forward pass is saved; views of it are made again where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from remat_cli.torch import batchnorm
from remat_cli.torch.fusing import is_kernel
from remat_cli.torch.joint import Joint
from remat_cli.torch.lowering import Lowered
from remat_cli.torch.private import extract, opaque_apart
from remat_cli.torch.reading import is_plain, output_of

Split = tuple[fx.GraphModule, fx.GraphModule]
PLACE = "remat_place"  # which compute of the order a call is, in its meta
HERE = {False: "must_be_in_forward", True: "must_be_in_backward"}  # otherwise random ops are placed on both sides


@dataclass(slots=True)
class _Building:
    joint: Joint
    graph: fx.Graph = field(default_factory=fx.Graph)
    now: dict[fx.Node, fx.Node] = field(default_factory=dict)  # a node of the joint graph -> its newest copy
    parts: dict[fx.Node, list[fx.Node]] = field(default_factory=dict)
    views: dict[Any, fx.Node] = field(default_factory=dict)
    late: bool = False
    early: set[fx.Node] = field(default_factory=set)  # copies in the forward pass
    saved: dict[fx.Node, None] = field(default_factory=dict)

    def copy(self, node: fx.Node) -> fx.Node:
        arguments = {argument: self.use(argument) for argument in node.all_input_nodes}
        return self.placed(self.graph.node_copy(node, arguments.__getitem__))

    def placed(self, new: fx.Node) -> fx.Node:
        """The new call, marked with its pass."""
        new.meta = {**new.meta, "partitioner_tag": HERE[self.late]}
        if not self.late:
            self.early.add(new)
        return new

    def use(self, node: fx.Node) -> fx.Node:
        """The newest copy of a node's result; the backward pass saves it if the forward pass made it."""
        if node in self.joint.views:
            arguments = tuple(self.use(argument) for argument in node.all_input_nodes)
            key = (node, self.late, arguments)
            if key not in self.views:
                self.views[key] = self.copy(node)
            return self.views[key]
        found = self.now[node]
        if self.late and found in self.early and found.op != "get_attr":
            self.saved[found] = None
        return found

    def part_from_here(self) -> None:
        """Have what is computed inside kernels computed anew for later ones: Inductor makes one kernel of all that
        read one result, and of ops that are planned apart too."""
        self.views = {key: copy for key, copy in self.views.items() if key[0] not in self.joint.inside}

    def compute(self, op: fx.Node, place: int) -> None:
        if self.joint.inside and not is_kernel(op):
            self.part_from_here()
        fewer = op in self.now and batchnorm.trains(op)
        if fewer:
            self.now[op] = self.placed(batchnorm.again(self.graph, op, self.use))
        else:
            self.now[op] = self.copy(op)
        for part in self.parts.get(op, ()):  # at once, so that no tuple stays in memory
            if not (fewer and part.args[1] in batchnorm.AVERAGES):
                self.now[part] = self.placed(self.graph.node_copy(part, self.now.__getitem__))
                self.now[part].meta[PLACE] = place
        self.now[op].meta[PLACE] = place


def build(lowered: Lowered, order: Sequence[int]) -> Split:
    """The forward and the backward graph of an order that solves the problem."""
    joint = lowered.joint
    module, saved = expand(lowered, order)
    plain = [node for node in saved if is_plain(node)]
    tensors, more = opaque_apart([node for node in saved if node not in plain])
    split: Split = extract(module, tensors, saved_sym_nodes=plain, num_fwd_outputs=len(joint.forward_outputs), **more)
    return split


def expand(lowered: Lowered, order: Sequence[int]) -> tuple[fx.GraphModule, list[fx.Node]]:
    """One graph with a call for each compute, and the values that cross the boundary in it."""
    joint = lowered.joint
    state = _Building(joint)
    for part, op in joint.parts.items():
        state.parts.setdefault(op, []).append(part)
    for node in joint.module.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            state.now[node] = state.graph.node_copy(node)
            if node not in joint.tangents:
                state.early.add(state.now[node])
    results: list[Any] = []
    for place, index in enumerate(order):
        op = lowered.ops[index]
        if op is None:
            results = [_used(state, output) for output in joint.forward_outputs]
            state.late = True
        else:
            state.compute(op, place)
    results += [_used(state, output) for output in joint.backward_outputs]
    state.graph.output(tuple(results)).meta = dict(output_of(joint.module).meta)
    state.graph.lint()
    return fx.GraphModule(joint.module, state.graph), list(state.saved)


def _used(state: _Building, output: Any) -> Any:
    return state.use(output) if isinstance(output, fx.Node) else output
