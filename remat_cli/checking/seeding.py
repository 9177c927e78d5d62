"""Models whose random ops draw without a seed, made comparable: no two runs of them agree, so each gets the same one.

Invariant: nothing else of the model is changed; one whose draws are seeded already is left as it is.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from remat_cli.model.semantics import draws_unseeded
from remat_cli.onnx_graph.walk import nodes_within
from remat_cli.rewrite.external import bring

SEED = 1


def find_unseeded(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The model's nodes that draw without a seed, in functions and subgraphs too."""
    bodies = (model.graph.node, *(function.node for function in model.functions))
    return [node for body in bodies for node in nodes_within(body) if draws_unseeded(node)]


def write_seeded(path: Path, folder: Path) -> Path:
    """A copy of the model in the folder, whose draws have a seed."""
    model = onnx.load(path, load_external_data=False)
    for node in find_unseeded(model):
        node.attribute.append(onnx.helper.make_attribute("seed", SEED if node.op_type == "Dropout" else float(SEED)))
    folder.mkdir(exist_ok=True)
    made = folder / path.name
    bring(model, path, made)
    made.write_bytes(model.SerializeToString())
    return made
