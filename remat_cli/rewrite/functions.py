"""Fusion groups as functions of the model: a backend that fuses sees which ops belong in one kernel.

Invariant: with every function written out again, the model computes what it did, from the same nodes under the same
names of values; only ops of the plan are grouped, and the groups can be run one after the other. Runtimes that know no
functions write them out themselves, and need not keep the file's order then: the plan's peak is no longer promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import onnx
from onnx import helper

from remat_cli.model import semantics
from remat_cli.model.graph import Graph, Op
from remat_cli.model.kernel_kinds import kind_of
from remat_cli.onnx_graph.walk import captures, edges, has_subgraph
from solvers.methods.mincut.groups import fused
from solvers.methods.mincut.tangents import following
from solvers.methods.mincut.traffic import FUSIBLE, seam_of
from solvers.problem import Kind

DOMAIN = "remat.fusion"
LEAST_IR_VERSION = 8  # the first IR version that has functions


@dataclass(slots=True)
class _Functions:
    """Makes the functions; groups that differ in nothing but names share one."""

    opsets: Sequence[onnx.OperatorSetIdProto]
    known: dict[bytes, onnx.FunctionProto] = field(default_factory=dict)

    def name(self, nodes: Sequence[onnx.NodeProto], inputs: Sequence[str], outputs: Sequence[str]) -> str:
        local = {name: f"in{place}" for place, name in enumerate(inputs)}
        local |= {name: f"out{place}" for place, name in enumerate(outputs)}
        body = [_rename(node, place, local) for place, node in enumerate(nodes)]
        arguments = [local[name] for name in inputs], [local[name] for name in outputs]
        used = {node.domain for node in body}
        opsets = [opset for opset in self.opsets if opset.domain in used or opset.domain in ("", "ai.onnx")]
        made = helper.make_function(DOMAIN, "", *arguments, body, opsets)
        key = made.SerializeToString(deterministic=True)
        if key not in self.known:
            made.name = f"group{len(self.known)}"
            self.known[key] = made
        return self.known[key].name


def with_functions(graph: Graph, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a call for each group of two ops or more."""
    nodes = list(model.graph.node)
    groups = _groups(graph, nodes)
    functions = _Functions(model.opset_import)
    outputs = {entry.name for entry in model.graph.output}
    calls = {}
    for number, members in enumerate(groups):
        if len(members) > 1:
            calls[number] = _call(nodes, members, outputs, functions, f"{DOMAIN}.{number}")
    grouped = deepcopy(model)
    del grouped.graph.node[:], grouped.graph.value_info[:]
    order = _in_order(nodes, groups)
    grouped.graph.node.extend(calls[number] if number in calls else nodes[groups[number][0]] for number in order)
    left = {name for node in grouped.graph.node for name in node.output}
    grouped.graph.value_info.extend(info for info in model.graph.value_info if info.name in left)
    if functions.known:
        grouped.functions.extend(functions.known.values())
        grouped.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        grouped.ir_version = max(grouped.ir_version, LEAST_IR_VERSION)
    return grouped


def _groups(graph: Graph, nodes: Sequence[onnx.NodeProto]) -> list[list[int]]:
    ops = {op.name: op for op in graph.ops}
    of = [ops.get(node.name.split("__remat_")[0]) for node in nodes]
    kinds = [_kind(op, node) for op, node in zip(of, nodes, strict=True)]
    seam = _seam(graph, of)

    def same_kernel(first: int, second: int) -> bool:
        if (first < seam) != (second < seam):
            return False
        can = kinds[second] is Kind.CONCAT or kinds[second] in FUSIBLE
        return can and kinds[first] in FUSIBLE

    return fused(_sources(nodes), same_kernel)


def _seam(graph: Graph, of: Sequence[Op | None]) -> int:
    """The place among the nodes at which the backward pass begins."""
    maker = {name: place for place, op in enumerate(graph.ops) for name in op.writes}
    sources = [[maker[name] for name in op.reads if name in maker] for op in graph.ops]
    ends = {maker[name] for name in graph.outputs if name in maker}
    found = following(sources, [op.backward for op in graph.ops], ends)
    follows = {op.name for op, one in zip(graph.ops, found, strict=True) if one}
    places = [place for place, op in enumerate(of) if op]
    seam = seam_of([(op.name, op.backward, op.name in follows) for op in of if op])
    return places[seam] if seam < len(places) else len(of)


def _kind(op: Op | None, node: onnx.NodeProto) -> Kind:
    if op is None or has_subgraph(node) or semantics.runs_once(op):
        return Kind.OPAQUE
    return kind_of(op)


def _sources(nodes: Sequence[onnx.NodeProto]) -> list[list[int]]:
    reads = edges([_reads(node) for node in nodes], [node.output for node in nodes])
    return [sorted(set(sources) - {place}) for place, sources in enumerate(reads)]


def _reads(node: onnx.NodeProto) -> tuple[str, ...]:
    return (*node.input, *captures(node))


def _call(
    nodes: Sequence[onnx.NodeProto], members: Sequence[int], outputs: set[str], functions: _Functions, name: str
) -> onnx.NodeProto:
    """The node that stands for a group."""
    inside = set(members)
    body = [nodes[place] for place in members]
    made = {value for node in body for value in node.output if value}
    given = dict.fromkeys(value for node in body for value in node.input if value and value not in made)
    read = {value for place, node in enumerate(nodes) if place not in inside for value in _reads(node)}
    handed = [value for node in body for value in node.output if value and (value in read or value in outputs)]
    return helper.make_node(functions.name(body, list(given), handed), list(given), handed, name, domain=DOMAIN)


def _rename(node: onnx.NodeProto, place: int, local: dict[str, str]) -> onnx.NodeProto:
    """The node with names that say only its place in the group."""
    found = deepcopy(node)
    found.name = f"node{place}"
    for slot, value in enumerate(node.output):
        if value:
            local.setdefault(value, f"value{place}_{slot}")
    del found.input[:], found.output[:]
    found.input.extend(local[value] if value else "" for value in node.input)
    found.output.extend(local[value] if value else "" for value in node.output)
    found.ClearField("doc_string")
    found.ClearField("metadata_props")
    return found


def _in_order(nodes: Sequence[onnx.NodeProto], groups: Sequence[Sequence[int]]) -> list[int]:
    """The groups in an order in which they can run, as near to the file's as possible."""
    group_of: Mapping[int, int] = {place: number for number, members in enumerate(groups) for place in members}
    sources = _sources(nodes)
    found: dict[int, None] = {}
    for last in sorted(range(len(groups)), key=lambda number: groups[number][-1]):
        waiting = [last]
        while waiting:
            number = waiting[-1]
            before = {group_of[source] for place in groups[number] for source in sources[place]} - {number}
            missing = [one for one in sorted(before) if one not in found]
            if number in found or not missing:
                waiting.pop()
                found.setdefault(number)
            else:
                waiting += missing
    return list(found)
