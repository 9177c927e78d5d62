"""The minimum cut of PyTorch's joint graphs, in all seven settings of its bans.

A file is a joint graph as PyTorch's partitioner sees it: nodes with their bytes and flags, and, where it has them,
PyTorch's answers, with which the figures are compared (`agrees`). `joint_torch.py` makes such files; without a name the
tests' are taken. `seconds` is the processor's time from the graph's nodes to the saved set: classes, bans, network,
maximum flow; the best of three, after the compiled code was loaded.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from solvers.methods.mincut.cut import Saving, cut
from solvers.methods.mincut.joint import AGGRESSIVE, DEFAULT, Bans, JointGraph, Vertex

FILES = Path(__file__).parents[2] / "tests" / "data" / "joint"
OPTIONS = {
    "default": DEFAULT,
    "aggressive": AGGRESSIVE,
    "more_aggressive": Bans(used_far_apart=False, long_chains=False, materialized_backward=False),
    "no_far": Bans(used_far_apart=False),
    "no_long": Bans(long_chains=False),
    "no_matbw": Bans(materialized_backward=False),
    "no_reduction": Bans(reductions=False),
}


def vertices_of(data: dict[str, Any]) -> list[Vertex]:
    nodes = nodes_of(data)
    place = {node["name"]: index for index, node in enumerate(nodes)}
    return [
        Vertex(
            bytes=node.get("bytes") or 0,
            reads=tuple(place[name] for name in node["deps"]),
            tensor=node["is_tensor"],
            fusible=node["fusible"],
            concat="aten.cat" in node["op"],
            view=node["view"],
            recomputable=node["recomputable"],
            random=node["random"],
            compute=node["compute_intensive"],
            given=node["is_primal"] or node["is_tangent"] or node["is_seed"],
            free=node.get("static_lifetime", False),
            tangent=node["is_tangent"],
            element="getitem" in node["op"] or "lift_fresh" in node["op"],  # never banned
            arguments=tuple(place[name] for name in node["posdeps"]),
        )
        for node in nodes
    ]


def nodes_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [node for node in data["nodes"] if node["op"] != "output"]


def joint_of(data: dict[str, Any], vertices: list[Vertex]) -> JointGraph:
    place = {node["name"]: index for index, node in enumerate(nodes_of(data))}
    split = data["num_fwd_outputs"]
    forward, backward = data["outputs"][:split], data["outputs"][split:]
    return JointGraph(vertices, *([place[name] for name in part if name is not None] for part in (forward, backward)))


def timed(data: dict[str, Any], vertices: list[Vertex], options: Bans) -> tuple[Saving, float]:
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        found = cut(joint_of(data, vertices), options)
        best = min(best, time.process_time() - began)
    return found, best


def lines(path: Path) -> Iterator[dict[str, Any]]:
    data = json.loads(path.read_text())
    vertices = vertices_of(data)
    for name, options in OPTIONS.items():
        found, seconds = timed(data, vertices, options)
        line = {
            "file": path.name,
            "option": name,
            "cut_value": found.value,
            "saved_bytes": sum(vertices[index].bytes for index in found.saved),
            "seconds": round(seconds, 5),
        }
        answer = data.get("answers", {}).get(name)
        if answer:
            line["agrees"] = answer["cut_value"] == found.value
        yield line


def load_compiled() -> None:
    """Numba loads what it has compiled at the first call."""
    cut(JointGraph([Vertex(1, (), given=True), Vertex(1, (0,), tangent=True)], [0], [1]), DEFAULT)


KEY = ("file", "option")


def words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path)


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    load_compiled()
    for path in asked.files or sorted(FILES.glob("*.json")):
        yield from lines(path)
