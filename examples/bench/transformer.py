"""Transformers of any depth, as problem files: the layers of the 12-layer GPT-2 instance, repeated.

Usage: python examples/bench/transformer.py 48 > gpt2_48l.problem.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).parents[2] / "tests" / "data" / "networks" / "gpt2.problem.json"
_LAYERS = 12
_LAYER = re.compile(r"l(\d+)_")


def deepen(layers: int) -> dict[str, Any]:
    """The template with its sixth layer, forward and backward, as often as it takes."""
    template = json.loads(TEMPLATE.read_text())
    extra = layers - _LAYERS
    middle = _LAYERS // 2
    bytes_of = {value["name"]: value["bytes"] for value in template["values"]}
    nodes: list[dict[str, Any]] = []
    block: list[dict[str, Any]] = []
    for node in [*template["nodes"], None]:
        if block and (node is None or _layer(node["name"]) != middle):
            backward = block[0]["phase"] == "backward"
            shifts = range(extra, -1, -1) if backward else range(extra + 1)
            nodes += [_shifted(item, middle, extra, shift) for shift in shifts for item in block]
            block = []
        if node is None:
            break
        if _layer(node["name"]) == middle:
            block.append(node)
        else:
            nodes.append(_shifted(node, middle, extra, 0))
    writes = [write for node in nodes for write in node["writes"]]
    values = [{"name": name, "bytes": bytes_of[_original(name, middle, extra)]} for name in writes]
    return {**template, "nodes": nodes, "values": values, "outputs": template["outputs"]}


def _layer(name: str) -> int | None:
    found = _LAYER.search(name)
    return int(found.group(1)) if found else None


def _shifted(node: dict[str, Any], middle: int, extra: int, shift: int) -> dict[str, Any]:
    """A node of the middle layer moved down by `shift` layers; others move by `extra` if they come after it."""
    inside = _layer(node["name"]) == middle

    def rename(name: str) -> str:
        layer = _layer(name)
        if layer is None or (not inside and layer < middle):
            return name
        if inside:
            return _LAYER.sub(f"l{layer + shift}_", name) if layer >= middle - 1 else name
        if layer == middle and node["phase"] == "backward" and not name.startswith("l"):
            return name  # the gradient that leaves the first copy
        return _LAYER.sub(f"l{layer + extra}_", name)

    return {
        **node,
        "name": rename(node["name"]),
        "reads": [rename(name) for name in node["reads"]],
        "writes": [rename(name) for name in node["writes"]],
    }


def _original(name: str, middle: int, extra: int) -> str:
    layer = _layer(name)
    if layer is None or layer <= middle:
        return name
    return _LAYER.sub(f"l{max(middle, layer - extra)}_", name)


if __name__ == "__main__":
    json.dump(deepen(int(sys.argv[1])), sys.stdout)
