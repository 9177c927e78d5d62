"""What a session holds by itself, before any run: the runtime's code, and for each op and value its tables and names.

The numbers are fitted to ONNX Runtime 1.31.1: 28 models of 7 to 25,000 ops, in strict sessions that were made from
files whose weights are mapped, and four random ones of 8,000 to 40,000 ops, whose runs add up to 6%.

Invariant: the figure depends on the graph and the order alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from remat_cli.model.graph import Graph

OWN_BYTES = 8_770_000  # the runtime's code, as far as a session touches it, and its pools
SLOT_BYTES = 1_320  # for each input and output of an op
ADDED_BYTES = 2_200  # for each small op that rewriting adds: a slice, by constants that all of them share
WORD_BYTES = 2.3  # for each byte of an op in the file: its names, and constants that stand in it
TYPED_BYTES = 990  # for each value whose type and shape stand in the file
STORED_BYTES = 3_560  # for each stored tensor, wherever its content lies


def session_bytes(graph: Graph, order: Iterable[int] | None = None, added: int = 0) -> int:
    """Of a session that runs the ops in that order, repeats included; without one, of the file as it stands. `added`:
    how many ops rewriting adds."""
    ops = graph.ops if order is None else [graph.ops[index] for index in order]
    model = graph.model.graph
    fixed = [node for node in model.node if node.op_type == "Constant"]
    slots = sum(len(op.node.input) + len(op.node.output) for op in ops) + len(fixed)
    sizes = {op.name: op.node.ByteSize() for op in graph.ops}
    words = sum(sizes[op.name] for op in ops) + sum(node.ByteSize() for node in fixed)
    typed = graph.told if order is None else sum(len(op.node.output) for op in ops)
    held = SLOT_BYTES * slots + WORD_BYTES * words + TYPED_BYTES * typed + STORED_BYTES * len(model.initializer)
    return OWN_BYTES + ADDED_BYTES * added + round(held)
