"""Model-local functions, as far as a reader must know them before they are written out.

Invariant: nothing is written out here, so that a file of functions that call each other without end is refused in time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx

from remat_cli.errors import BadInput
from remat_cli.limits import FUNCTION_NODES
from remat_cli.onnx_graph.walk import nodes_within

FunctionKey = tuple[str, str, str]  # domain, name, overload


def refuse_endless(model: onnx.ModelProto, path: Path) -> None:
    """Refuse a model whose functions make too many nodes, or call each other in a circle."""
    if _count_written_out(model) > FUNCTION_NODES:
        raise BadInput(f"{path}: with its functions written out it has more than {FUNCTION_NODES} nodes, or no end")


def _count_written_out(model: onnx.ModelProto) -> int:
    """How many nodes the model has once its functions are written out, as far as the limit; beyond it for a circle."""
    bodies = {(function.domain, function.name, function.overload): function.node for function in model.functions}
    known: dict[FunctionKey, int] = {}
    waiting = list(bodies)
    while waiting:
        name = waiting[-1]
        calls = [call for call in _names(bodies[name]) if call in bodies]
        missing = [call for call in calls if call not in known]
        if len(waiting) > len(bodies) * (len(bodies) + 1):
            return FUNCTION_NODES + 1  # functions that call each other in a circle
        if missing:
            waiting += missing
            continue
        known[name] = min(_total(bodies[name], known), FUNCTION_NODES + 1)
        waiting.pop()
    return _total(model.graph.node, known)


def _total(nodes: Iterable[onnx.NodeProto], known: dict[FunctionKey, int]) -> int:
    return sum(known.get(name, 1) for name in _names(nodes))


def _names(nodes: Iterable[onnx.NodeProto]) -> list[FunctionKey]:
    return [(node.domain, node.op_type, node.overload) for node in nodes_within(nodes)]
