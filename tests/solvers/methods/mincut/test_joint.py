"""PyTorch's joint graphs: its cut values, the values it saves and those it bans, in all settings of its bans.

Two graphs came with the task; the other two were made by examples/bench/joint_torch.py with torch 2.13: one with random
ops, one with BatchNorm, concatenations and pooling.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from examples.bench.joint import OPTIONS, joint_of, nodes_of, vertices_of
from solvers.methods.mincut.cut import cut
from solvers.methods.mincut.joint import JointGraph, banned

FOLDER = Path(__file__).parents[3] / "data" / "joint"
GRAPHS = sorted(path.stem for path in FOLDER.glob("*.json"))


@cache
def loaded(graph: str) -> tuple[dict[str, Any], JointGraph]:
    data = json.loads((FOLDER / f"{graph}.json").read_text())
    return data, joint_of(data, vertices_of(data))


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_as_pytorch_does(graph: str, option: str) -> None:
    data, joint = loaded(graph)
    names = [node["name"] for node in nodes_of(data)]
    answer = data["answers"][option]
    found = cut(joint, OPTIONS[option])
    assert {names[index] for index in banned(joint, OPTIONS[option])} == set(answer["banned"])
    assert found.value == answer["cut_value"]
    assert {names[index] for index in found.saved} == set(answer["saved"])


def test_no_random_op_is_computed_again() -> None:
    """In the graph with dropout: every way from a random op to the backward pass goes through something saved."""
    data, joint = loaded("dropout_1l")
    saved = set(cut(joint, OPTIONS["default"]).saved)
    waiting = [index for index, node in enumerate(nodes_of(data)) if "rand" in node["op"]]
    assert waiting
    while waiting:
        at = waiting.pop()
        if at not in saved:
            assert not joint.closure[at]
            waiting += joint.users[at]
