"""A model made ready: its opset raised, its sizes fixed, its inputs at hand, fused as a stock session would.

Invariant: dimensions that the inputs give are taken from them; of all others that have no size one message asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from profiles import device as devices
from profiles.running import CannotRun
from remat_cli.actions.optimizing import fuse
from remat_cli.actions.seeing import graph_as_seen, words
from remat_cli.actions.shrinking.asked import ShrinkQuestion
from remat_cli.checking import feeds as feeding
from remat_cli.errors import BadInput, Usage
from remat_cli.formats.arrays import write as write_arrays
from remat_cli.formats.files import write_whole
from remat_cli.ingest import ingest
from remat_cli.ingest.shapes import UnknownSize
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.load import load
from remat_cli.onnx_graph.stored import bring_in, is_beside
from remat_cli.runtime.optimized import LAYOUTS

FEEDS = "feeds.npz"
FUSED, LAID_OUT = "fused.onnx", "laid_out.onnx"


@dataclass(frozen=True, slots=True)
class Prepared:
    """`path`: the model as it was given; `graph`: the same with its sizes, None where it was `refused`, which says why.
    `feeds`: the file of its inputs. `seen`: what of it depends on data, and is as the inputs make it."""

    path: Path
    graph: Graph | None
    feeds: Path
    seen: str = ""
    refused: str = ""


def prepare(model: Path, asked: ShrinkQuestion, folder: Path) -> Prepared:
    """The model made ready. One that is refused can still be run, on inputs that were given."""
    arrays = None if asked.feeds is None else _arrays(asked.feeds)
    dims = dict(asked.dims)
    if arrays is not None:
        dims = {**_dims_in(load(model)[0], arrays, dims), **dims}
    try:
        graph = graph_as_seen(lambda sizes: ingest(model, sizes), dims, devices.find("cpu"), arrays)
    except BadInput as error:
        if arrays is None and isinstance(error, UnknownSize):
            raise BadInput(error.or_else("inputs that make it with --feeds")) from error
        if arrays is None:
            raise
        return Prepared(model, None, _stored(arrays, folder), refused=str(error))
    if arrays is None:
        return Prepared(model, graph, _stored(feeding.draw_feeds(graph, asked.seed), folder), words(graph, dims))
    given = feeding.hold_to_inputs(graph, arrays, "the feeds")
    return Prepared(model, graph, _stored(given, folder), words(graph, dims, "the feeds"))


def _stored(given: Mapping[str, Any], folder: Path) -> Path:
    feeds = folder / FEEDS
    write_arrays(given, feeds)
    return feeds


def _arrays(feeds: Path | Mapping[str, Any]) -> dict[str, np.ndarray]:
    if isinstance(feeds, Path):
        return feeding.arrays_in(feeds)
    return {name: np.asarray(array) for name, array in feeds.items()}


def _dims_in(model: onnx.ModelProto, arrays: Mapping[str, np.ndarray], given: Mapping[str, int]) -> dict[str, int]:
    """The sizes that the arrays give to dimensions that have none."""
    found: dict[str, int] = {}
    for value in model.graph.input:
        sizes, array = value.type.tensor_type.shape.dim, arrays.get(value.name)
        if array is None or len(sizes) != array.ndim:
            continue  # whoever holds arrays to inputs says so
        for axis, (dim, size) in enumerate(zip(sizes, array.shape, strict=True)):
            name = dim.dim_param or f"{value.name}:{axis}"
            if dim.HasField("dim_value") or name in given or f"{value.name}:{axis}" in given:
                continue
            if found.setdefault(name, size) != size:
                raise Usage(f"dimension {name!r} is {found[name]} and {size} in the feeds; it is one size in the model")
    return found


def fused(path: Path, graph: Graph, folder: Path, layouts: bool, free: onnx.ModelProto | None = None) -> Path:
    """The file of what a stock session makes of the model. `layouts`: with those that it chooses for this machine, in
    which no op can be cut. `free`: the model as it was given, if its dimensions stay free."""
    model, home = graph.model if free is None else freed(graph.model, free), path.resolve().parent
    destination = folder / (LAID_OUT if layouts else FUSED)
    try:
        made = fuse(model, home, graph.sha256, without=() if layouts else LAYOUTS)
    except CannotRun as refused:
        raise BadInput(f"onnxruntime cannot load {path} with these sizes: {refused}") from refused
    _hold_all(made, home)
    write_whole(destination, made.SerializeToString(deterministic=True))
    return destination


def _hold_all(model: onnx.ModelProto, home: Path) -> None:
    """Have the model hold its external tensors itself."""
    for tensor in filter(is_beside, model.graph.initializer):
        for entry in tensor.external_data:
            entry.value = str(home / entry.value) if entry.key == "location" else entry.value
        bring_in(tensor)


def freed(model: onnx.ModelProto, given: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the dimensions that inputs and outputs were given with, and no sizes in between. Its ops
    are those that were planned at one size; whoever keeps it has run it at others."""
    made = deepcopy(model)
    types = {value.name: value.type for value in (*given.graph.input, *given.graph.output)}
    for value in (*made.graph.input, *made.graph.output):
        if value.name in types:
            value.type.CopyFrom(types[value.name])
    del made.graph.value_info[:]
    return made
