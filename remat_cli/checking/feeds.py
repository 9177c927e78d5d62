"""The inputs of the models: seeded random arrays that are valid for the ops that read them, or the user's own.

Invariant: there is one array for each input of the graph, of its type and shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import onnx
from onnx import helper

from remat_cli.errors import BadInput
from remat_cli.formats import arrays
from remat_cli.model.graph import Graph
from remat_cli.model.semantics import draws_unseeded
from remat_cli.onnx_graph.walk import nodes_within
from remat_cli.rewrite.external import bring


def draw_feeds(graph: Graph, seed: int) -> dict[str, Any]:
    from remat_cli.model.signatures import feeds_of, ops_of

    return feeds_of(graph, ops_of(graph), seed)


def nudged(feeds: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The same, with some real numbers moved to a neighbour; whole ones stay, which may be scales or masks."""
    random = np.random.default_rng(seed)
    return {name: _nudged(array, random) if array.dtype.kind == "f" else array for name, array in feeds.items()}


def _nudged(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    ways = random.choice(np.array([-np.inf, np.inf], array.dtype), array.shape)
    stays = (array == np.rint(array)) | (random.random(array.shape) < 1 / 3)
    return np.where(stays, array, np.nextafter(array, ways))


def read_feeds(graph: Graph, path: Path) -> dict[str, Any]:
    """The arrays in an .npz file, checked against the graph's inputs."""
    return hold_to_inputs(graph, arrays_in(path), str(path))


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    """The arrays in an .npz file, by name."""
    try:
        return arrays.read(path)
    except OSError as error:
        raise BadInput(f"cannot read the feeds {path}: {error.strerror or error}") from error
    except (AttributeError, ValueError, BadZipFile) as error:
        raise BadInput(f"{path} is not an .npz file of plain arrays; write one with numpy.savez") from error


def hold_to_inputs(graph: Graph, found: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The arrays, checked against the graph's inputs; every message begins with `where` they are from."""
    missing = sorted(set(graph.inputs) - set(found))
    if missing:
        raise BadInput(f"{where}: there is no array for input '{missing[0]}'")
    held = {name: np.asarray(found[name]) for name in graph.inputs}
    for name, array in held.items():
        value = graph.values[name]
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(value.dtype))
        if array.shape != value.shape or array.dtype != dtype:
            wanted = f"{dtype}{list(value.shape)}"
            raise BadInput(f"{where}: input '{name}' is {array.dtype}{list(array.shape)}, not {wanted}")
    return held


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
