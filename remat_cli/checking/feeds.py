"""The inputs of the models: seeded random arrays that are valid for the ops that read them, or the user's own.

Invariant: there is one array for each input of the graph, of its type and shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from onnx import helper

from remat_cli.errors import BadInput
from remat_cli.model.graph import Graph


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
        with np.load(path) as stored:
            return {name: stored[name] for name in stored.files}
    except OSError as error:
        raise BadInput(f"cannot read the feeds {path}: {error.strerror or error}") from error
    except (AttributeError, ValueError, BadZipFile) as error:
        raise BadInput(f"{path} is not an .npz file of plain arrays; write one with numpy.savez") from error


def hold_to_inputs(graph: Graph, found: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The arrays, checked against the graph's inputs; every message begins with `where` they are from."""
    missing = sorted(set(graph.inputs) - set(found))
    if missing:
        raise BadInput(f"{where}: there is no array for input '{missing[0]}'")
    arrays = {name: np.asarray(found[name]) for name in graph.inputs}
    for name, array in arrays.items():
        value = graph.values[name]
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(value.dtype))
        if array.shape != value.shape or array.dtype != dtype:
            wanted = f"{dtype}{list(value.shape)}"
            raise BadInput(f"{where}: input '{name}' is {array.dtype}{list(array.shape)}, not {wanted}")
    return arrays
