"""Checkmate's Figure 1: the memory of a network of 32 layers over one step, as it stands and rematerialized.

Usage: python examples/paper/figure1.py   (writes figure1.csv and docs/pictures/before-and-after.png; runs no model)

The paper does not name its network: it needs 30 GB, and 21 GB less with some of it computed again. Ours has 31 equal
convolutions and a linear layer, with a batch that takes it to 30 GB too, on a V100 by estimate; the budget is 9 GB.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import remat_cli as remat
from remat_cli.saying.pictures.memory import draw_memory
from remat_cli.saying.showing import Shown, shown

HERE = Path(__file__).parent
PICTURE = HERE.parents[1] / "docs" / "pictures" / "before-and-after.png"
LAYERS, CHANNELS, IMAGE, CLASSES = 31, 64, 200, 1000
BATCH = 81  # takes the step to 30 GB
BUDGET = "9GB"
SECONDS = 60.0


def network() -> onnx.ModelProto:
    """Convolutions of 3 by 3 with a Relu each, the mean of each channel, and a linear layer."""
    nodes, weights, value = [], [], "input"
    for number in range(LAYERS):
        shape = (CHANNELS, CHANNELS if number else 3, 3, 3)
        weights.append(numpy_helper.from_array(np.full(shape, 0.01, np.float32), f"conv{number}.weight"))
        made = f"conv{number}"
        nodes.append(helper.make_node("Conv", [value, f"{made}.weight"], [made], made, pads=[1, 1, 1, 1]))
        value = f"relu{number}"
        nodes.append(helper.make_node("Relu", [made], [value], value))
    weights.append(numpy_helper.from_array(np.full((CLASSES, CHANNELS), 0.01, np.float32), "fc.weight"))
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["mean"], "mean"))
    nodes.append(helper.make_node("Flatten", ["mean"], ["features"], "flatten"))
    nodes.append(helper.make_node("Gemm", ["features", "fc.weight"], ["logits"], "fc", transB=1))
    given = helper.make_tensor_value_info("input", TensorProto.FLOAT, [BATCH, 3, IMAGE, IMAGE])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [BATCH, CLASSES])
    graph = helper.make_graph(nodes, "deep", [given], [logits], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def planned() -> Shown:
    with tempfile.TemporaryDirectory() as folder:
        train = remat.grad(network())
        plan = remat.solve(train, budget=BUDGET, costs=remat.profile(train, estimate="v100"), time_limit=SECONDS)
        path = Path(folder) / "deep32.plan.json"
        plan.save(path)
        return shown(path)


def write(found: Shown, path: Path) -> None:
    """Each compute: when it begins, what runs, and what is in memory."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("schedule", "op", "phase", "begins_ns", "bytes"))
        for name, line in zip(("as it stands", "rematerialized"), found.lines, strict=True):
            for step, node in enumerate(line.order):
                at = (found.subject.nodes[node], line.phase(step), line.begins[step], line.memory[step])
                rows.writerow((name, *at))


if __name__ == "__main__":
    found = planned()
    write(found, HERE / "figure1.csv")
    draw_memory(PICTURE, [found])
    print(found.before.peak, found.after.peak, f"{found.overhead:+.2%}", found.recorded and found.recorded.status)
