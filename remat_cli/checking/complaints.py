"""What onnxruntime says where it does not run a model, in words that name the op.

Invariant: a message that is not understood is given in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remat_cli.model.graph import Graph


def last_words(text: str) -> str:
    """The end of onnxruntime's message, where the reason is."""
    words = " ".join(text.split())
    found = re.search(r"Available memory of \d+ is smaller than requested bytes of \d+", words)
    return found.group() if found else words[-300:]


def name_culprit(graph: Graph, text: str) -> str:
    """The op that onnxruntime has no kernel for, if its message is about one."""
    named = next(_unrunnable(graph, text), None)
    if named is None:
        return last_words(text)
    return f"it has no kernel for {named}, so the plan cannot be verified here; the rewritten model itself is complete"


def _unrunnable(graph: Graph, text: str) -> Iterator[str]:
    patterns = (r"implementation for (\w+)\(", r"(\w+)\(-?\d+\) is not a registered", r"No [Oo]p registered for (\w+)")
    for pattern in patterns:
        for kind in re.findall(pattern, text):
            op = next((op for op in graph.ops if op.op_type == kind), None)
            yield f"op {op.name} ({op.domain or 'ai.onnx'} {kind})" if op else kind
