"""Names that a graph defines twice: the file says two things, and no runtime loads it.

Invariant: what ONNX Runtime loads has no such name. A weight may be listed as an input, two branches may use the same
names, and a branch may store a weight under a name from outside.
"""

from __future__ import annotations

from collections.abc import Container

import onnx

from remat_cli.onnx_graph.walk import names_stored, subgraphs

GIVEN = "an input or a weight"


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
