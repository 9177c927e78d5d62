"""Names and order: every node gets a unique name and stands after all that it reads.

Invariant: nodes that have a name of their own keep it, a sorted graph keeps its order, and the same file always gives
the same names. Constant nodes come first: a runtime turns them into weights, so they take no part in any plan. What
ONNX Runtime loads has no value that is made twice; a weight may be listed as an input, two branches may use the same
names, and a branch may store a weight under a name from outside.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import onnx

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.walk import by_rank, captures, names_stored, subgraphs

GIVEN = "an input or a weight"


@dataclass(slots=True)
class Names:
    """Names that no other value, or no other node, has."""

    taken: set[str]

    def fresh(self, stem: str) -> str:
        name = stem if stem not in self.taken else next(n for k in count(1) if (n := f"{stem}_{k}") not in self.taken)
        self.taken.add(name)
        return name


def name_nodes(graph: onnx.GraphProto) -> None:
    """Make names unique: the first node with a name keeps it; the others are named after their op and place in the
    graph."""
    names, seen = Names({node.name for node in graph.node}), {""}
    for place, node in enumerate(graph.node):
        if node.name in seen:
            node.name = names.fresh(node.name or f"{node.op_type}_{place}")
        seen.add(node.name)


def sort_nodes(graph: onnx.GraphProto, path: Path) -> None:
    """Check the writers of names, and move nodes that stand before something they read."""
    nodes = list(graph.node)
    writer = _writers(graph, nodes, path)
    needs = [_needs(node, writer, path) for node in nodes]
    for output in graph.output:
        if output.name not in writer:
            raise BadInput(f"{path}: output {output.name!r} is made by no node; the file may be damaged")
    order = _stable_order(nodes, needs, path)
    if order != list(range(len(nodes))):
        del graph.node[:]
        graph.node.extend(nodes[index] for index in order)


def _writers(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], path: Path) -> dict[str, int]:
    """The index of the node that writes each name; -1 for inputs and weights."""
    inputs = [value.name for value in graph.input]
    _refuse_twice(inputs, f"{path}: the graph has two inputs")
    stored = names_stored(graph)
    _refuse_twice(stored, f"{path}: the graph has two initializers")
    if fault := find_name_fault(graph):
        raise BadInput(f"{path}: {fault}")
    writer = dict.fromkeys((*inputs, *stored), -1)
    writer.update((name, index) for index, node in enumerate(nodes) for name in node.output if name)
    return writer


def _refuse_twice(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"{what} called {name!r}; names must be unique")
        seen.add(name)


def _needs(node: onnx.NodeProto, writer: dict[str, int], path: Path) -> set[int]:
    found = set()
    for name in (*node.input, *captures(node)):
        if name and name not in writer:
            raise BadInput(f"{path}: {name_of(node)} reads {name!r}, which no node makes and is no input or weight")
        if name and writer[name] >= 0:
            found.add(writer[name])
    return found


def _stable_order(nodes: list[onnx.NodeProto], needs: list[set[int]], path: Path) -> list[int]:
    """The stable order: constants first, then always the earliest node that can run, Shape and Size before all others.

    ONNX Runtime's priority-based order is the same, so that a sorted graph stays as it is or becomes what would run.
    """
    order = by_rank(needs, list(map(_rank, nodes)))
    if len(order) < len(nodes):
        raise BadInput(f"{path}: the graph has a cycle: {_cycle(nodes, needs, set(order))}")
    return order


def _rank(node: onnx.NodeProto) -> int:
    return {"Constant": 0, "Shape": 1, "Size": 1}.get(node.op_type, 2)


def _cycle(nodes: list[onnx.NodeProto], needs: list[set[int]], sorted_ones: set[int]) -> str:
    """Walk back from a node that never got ready until one comes up again."""
    index = next(i for i in range(len(nodes)) if i not in sorted_ones)
    trail: list[int] = []
    while index not in trail:
        trail.append(index)
        index = min(need for need in needs[index] if need not in sorted_ones)
    ring = [*trail[trail.index(index) :], index][::-1]
    shown = [name_of(nodes[i]) for i in ring]
    return " -> ".join(shown if len(shown) <= 8 else [*shown[:4], "...", *shown[-3:]])


def find_name_fault(graph: onnx.GraphProto, outside: tuple[Container[str], ...] = ()) -> str:
    """Which value an op makes under a name that is taken, here or in the graphs around (`outside`), and what to do;
    empty if there is none."""
    stored = names_stored(graph)
    makers = dict.fromkeys((*(value.name for value in graph.input), *stored), GIVEN)
    for node in graph.node:
        for name in filter(None, node.output):
            if name in makers or any(name in names for names in outside):
                return _fault(name, makers.get(name, "the graph around"), node)
            makers[name] = name_of(node)
    inside = (makers, *outside)
    faults = (find_name_fault(part, inside) for node in graph.node for part in subgraphs(node))
    return next(filter(None, faults), "")


def name_of(node: onnx.NodeProto) -> str:
    """The node as errors call it."""
    made = next((name for name in node.output if name), "?")
    return f"{node.op_type} {node.name!r}" if node.name else f"the {node.op_type} that makes {made!r}"


def _fault(name: str, first: str, node: onnx.NodeProto) -> str:
    said = f"value {name!r} is written by both {first} and {name_of(node)}, so no runtime loads the model"
    if first != GIVEN:
        return said
    return (
        f"{said}. PyTorch's exporter writes so a parameter {name!r} of a module that also calls an op of that name: "
        "rename the parameter, and export anew"
    )
