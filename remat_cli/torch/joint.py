"""A joint graph as AOTAutograd hands it to a partitioner, cleaned, and what its nodes and their memory are.

Invariant: the module given is not changed. Every call is one of three: an op, which makes memory or must be run at its
place; a part, which takes an op's result out of a tuple; a view, which looks at memory that is there.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from remat_cli.torch import batchnorm
from remat_cli.torch.private import fx_graph_cse
from remat_cli.torch.reading import (
    NotUnderstood,
    bytes_kept,
    bytes_of,
    bytes_of_sum,
    chooses,
    has_effect,
    is_plain,
    is_random,
    is_sparse,
    is_tangent,
    is_view,
    mutated_inputs,
    output_of,
    storages_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """One storage. `maker`: the op that allocates it, or a tangent; None for an input, which is always there."""

    maker: fx.Node | None
    bytes: int
    size: Any  # the same as it was given, which may be symbolic


@dataclass(slots=True, eq=False)
class Joint:
    """`buffers`: what each node's result lives in. `backward`: nodes that cannot run before the tangents are there.

    `effects`: ops that draw random numbers or leave something behind; each runs once, all in this order. `accesses`:
    ops that touch memory which some op writes over; likewise.
    """

    module: fx.GraphModule
    forward_outputs: list[Any]
    backward_outputs: list[Any]
    tangents: list[fx.Node]
    ops: dict[fx.Node, int] = field(default_factory=dict)  # the index of each op
    parts: dict[fx.Node, fx.Node] = field(default_factory=dict)
    views: set[fx.Node] = field(default_factory=set)
    inside: set[fx.Node] = field(default_factory=set)  # views that are ops, computed inside the kernels that read them
    buffers: dict[fx.Node, tuple[Buffer, ...]] = field(default_factory=dict)
    resident: list[Buffer] = field(default_factory=list)
    backward: set[fx.Node] = field(default_factory=set)
    effects: list[fx.Node] = field(default_factory=list)
    accesses: list[fx.Node] = field(default_factory=list)
    pinned: set[fx.Node] = field(default_factory=set)  # ops that run once and before the boundary, for another reason
    again: set[fx.Node] = field(default_factory=set)  # forward ops of which the backward pass must have its own results

    def sequence(self) -> tuple[list[fx.Node], list[fx.Node]]:
        """The ops in an order in which they can run: before the boundary what must be, after it what is left."""
        forced = {n for n in (*self.effects, *self.accesses, *self.pinned) if n not in self.backward}
        front = _ancestors([*_nodes(self.forward_outputs), *forced])
        first = [op for op in self.ops if op in front]
        done, rest = set(first), []
        for op in self.ops:
            if op in self.backward:
                rest += [n for n in self._missing(op, done) if n is not op]
                rest.append(op)
                done.add(op)
        for op in self.ops:  # ops that only backward outputs without a tangent need
            if op not in done:
                rest += self._missing(op, done)
        return first, rest

    def _missing(self, op: fx.Node, done: set[fx.Node]) -> list[fx.Node]:
        """The op and what it is made of, as far as it was not computed, in the order of the graph."""
        wanted, stack = set(), [op]
        while stack:
            node = stack.pop()
            if node not in wanted and node not in done:
                wanted.add(node)
                stack.extend(node.all_input_nodes)
        found = sorted((node for node in wanted if node in self.ops), key=self.ops.__getitem__)
        done.update(found)
        return found


def copy_of(module: fx.GraphModule) -> fx.GraphModule:
    """The module with a graph of its own; constants and subgraphs are shared."""
    graph = fx.Graph()
    result = graph.graph_copy(module.graph, {})
    graph.output(result).meta = dict(output_of(module).meta)
    return fx.GraphModule(module, graph)


def read(module: fx.GraphModule, num_fwd_outputs: int) -> Joint:
    """The joint graph without dead and double ops. Raises NotUnderstood where something cannot be planned."""
    module = copy_of(module)
    module.graph.eliminate_dead_code()
    about = dict(output_of(module).meta)
    module.graph = _without_doubles(module.graph)
    batchnorm.drop_unread(module.graph)
    batchnorm.correct_types(module.graph)
    output = output_of(module)
    output.meta = about
    outputs = list(output.args[0])
    tangents = [node for node in module.graph.find_nodes(op="placeholder") if is_tangent(node)]
    joint = Joint(module, outputs[:num_fwd_outputs], outputs[num_fwd_outputs:], tangents)
    _check(joint)
    _find_buffers(joint)
    _find_backward(joint)
    _find_order(joint)
    return joint


def _without_doubles(graph: fx.Graph) -> fx.Graph:
    """The graph without double ops. torch keeps results that are returned apart, for a caller may write into them, but
    not those of an op that has several: such an op is put back."""
    for part in graph.find_nodes(op="call_function", target=operator.getitem):
        part.meta["whole"] = part.args[0].meta.get("val")
    graph = fx_graph_cse(graph)
    back: dict[int, fx.Node] = {}
    for part in graph.find_nodes(op="call_function", target=operator.getitem):
        maker, whole = part.args[0], part.meta.pop("whole")
        if maker.meta.get("val") is not whole and maker.target is not operator.getitem:
            if id(whole) not in back:
                with graph.inserting_before(part):
                    back[id(whole)] = graph.node_copy(maker)
                back[id(whole)].meta["val"] = whole
            part.update_arg(0, back[id(whole)])
    return graph


def _nodes(values: Iterable[Any]) -> list[fx.Node]:
    return [value for value in values if isinstance(value, fx.Node)]


def _ancestors(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    found: set[fx.Node] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.all_input_nodes)
    return found


def _check(joint: Joint) -> None:
    for node in joint.module.graph.nodes:
        if node.op in ("call_module", "call_method"):
            raise NotUnderstood(f"'{node.name}' is a {node.op}, not a call of a function")
        if node.op == "placeholder" and "rng_state" in node.name:
            raise NotUnderstood(f"the graph takes the state of a random generator ('{node.name}')")
        if node.op == "call_function" and "val" not in node.meta and node.users:
            raise NotUnderstood(f"nothing is known of the result of '{node.name}' ({node.target})")


def _find_buffers(joint: Joint) -> None:
    """Which storages each node's result lives in, who made them, and whether it is an op, a part or a view."""
    known: dict[int, Buffer] = {}
    for node in joint.module.graph.nodes:
        if node.op == "output":
            continue
        value = node.meta.get("val")
        if node.op == "get_attr" and value is None:
            value = getattr(joint.module, str(node.target), None)
        fixed = node.op == "get_attr" or (node.op == "placeholder" and not is_tangent(node))
        found = storages_of(value, node.name)
        if node.op == "call_function":
            _sort(joint, node)
        if node in joint.views:
            seen = (buffer for argument in node.all_input_nodes for buffer in joint.buffers[argument])
            joint.buffers[node] = tuple(dict.fromkeys(seen))
            continue
        for place, (key, size) in enumerate(found.items()):
            if key in known:
                continue
            maker = joint.parts.get(node, node)
            given = [[buffer.size for buffer in joint.buffers.get(argument, ())] for argument in node.args[:2]]
            if is_sparse(value) and not fixed:
                size = bytes_of_sum(node, place, given)
            else:
                size = bytes_kept(node, size, next(iter(given), []), place)
            known[key] = Buffer(None if fixed else maker, bytes_of(size, node.name), size)
            if fixed:
                joint.resident.append(known[key])
            elif maker is not node:
                raise NotUnderstood(f"'{node.name}' takes memory out of '{maker.name}' that was not in it")
        joint.buffers[node] = tuple(known[key] for key in found)


def _sort(joint: Joint, node: fx.Node) -> None:
    if node.target is operator.getitem:
        source = node.args[0]
        assert isinstance(source, fx.Node)
        if source in joint.parts or source in joint.ops:
            joint.parts[node] = joint.parts.get(source, source)
        else:
            joint.views.add(node)
    elif is_view(node):
        joint.views.add(node)
    else:
        joint.ops[node] = len(joint.ops)


def _find_backward(joint: Joint) -> None:
    """Mark the nodes of the backward pass: those that need a tangent, effects traced there, and all that need those."""
    found = joint.backward
    found.update(joint.tangents)
    for node in joint.module.graph.nodes:
        if node.op != "call_function":
            continue
        tag = node.meta.get("partitioner_tag")
        late = tag == "must_be_in_backward" or (tag == "is_backward" and (is_random(node) or has_effect(node)))
        if late or any(argument in found for argument in node.all_input_nodes):
            found.add(node)


def _find_order(joint: Joint) -> None:
    """Find the ops that must run once, in the order of the graph."""
    joint.effects = [op for op in joint.ops if is_random(op) or has_effect(op)]
    joint.pinned = {op for op in joint.ops if is_plain(op) or chooses(op)}
    written = {buffer for op in joint.ops for target in mutated_inputs(op) for buffer in joint.buffers[target]}
    later = _written_after(joint)
    for op in joint.ops:
        if batchnorm.trains(op):
            continue
        touched = {buffer for argument in op.all_input_nodes for buffer in joint.buffers[argument]}
        if touched & written or written.intersection(joint.buffers[op]):
            joint.accesses.append(op)
        if touched & later and op not in joint.backward:
            joint.pinned.add(op)


def _written_after(joint: Joint) -> set[Buffer]:
    """The inputs that are written over when the forward graph has run: what it returns for them says so."""
    names = {about for about in _written_by_outputs(joint) if about is not None}
    given = joint.module.graph.find_nodes(op="placeholder")
    return {buffer for node in given if node.meta.get("desc") in names for buffer in joint.buffers[node]}


def _written_by_outputs(joint: Joint) -> list[Any]:
    """For each output the input that it is copied over, if it is there for that."""
    output = output_of(joint.module)
    told = [getattr(about, "mutated_input", None) for about in output.meta.get("desc") or ()]
    return told + [None] * (len(joint.forward_outputs) - len(told))


def held_outputs(joint: Joint) -> list[fx.Node]:
    """The forward outputs that the caller goes on holding: what is copied over an input is let go of."""
    outputs = zip(joint.forward_outputs, _written_by_outputs(joint), strict=False)
    return [output for output, over in outputs if isinstance(output, fx.Node) and over is None]
