"""Sizes that depend on data, as a run of the original on random inputs makes them.

Invariant: nothing that a user states is seen anew, nor anything that follows from what is known; all that was seen is
named, for other data may make more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from profiles import survey
from profiles.device import Device
from profiles.running import CannotRun
from remat_cli.actions.whole_graph import check_room
from remat_cli.checking.feeds import hold_to_inputs
from remat_cli.checking.processes import Bench
from remat_cli.checking.trying import in_file
from remat_cli.ingest import graph_of
from remat_cli.ingest.shapes import EVERY_AXIS, UnknownSize
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import STRICT
from remat_cli.model.signatures import feeds_of, ops_of
from remat_cli.onnx_graph.walk import captures, leading_to

Dims = Mapping[str, int]
Read = Callable[[Dims], Graph]
Places = Collection[tuple[str, int]]  # values and their axes

SEEN_VALUES = 32  # values of such sizes, each of which takes a run
SEEING_ROUNDS = 3  # until a run of the whole makes the sizes that it was fed for
TIMEOUT_SECONDS = 120.0  # seconds for a run
AS_SEEN = "as seen in a run on {}, and other data may need more: "  # of the cost file
NAMED_OPS = 3  # ops whose course depends on data


def graph_as_seen(read: Read, dims: Dims, device: Device, fed: Mapping[str, Any] | None = None) -> Graph:
    """The graph; the sizes (`value:axis`) that had to be seen for it are among its `dims`. `fed`: the inputs of the
    runs that show them; by default random ones."""
    seen: dict[str, int] = {}
    places: list[tuple[str, int]] = []
    for _ in range(SEEN_VALUES):
        try:
            graph = read({**dims, **seen})
        except UnknownSize as unknown:
            if unknown.model is None or not (sizes := _see_sizes(unknown, {**dims, **seen}, device, fed)):
                raise
            seen |= sizes
            places += unknown.places
        else:
            return _see_again(read, graph, dims, seen, places, device, fed) if seen else graph
    return read({**dims, **seen})


def words(graph: Graph, given: Collection[str], fed: str = "random inputs") -> str:
    """What of the graph is as other data may not have it; `given`: the sizes that were stated. `fed`: what was seen
    to make it so."""
    sizes = [f"{name}={size}" for name, size in graph.dims.items() if name not in given and not _is_given(name, graph)]
    inside = [f"what {op.op_type} {op.name!r} works in" for op in graph.ops if op.name in graph.by_data]
    inside[NAMED_OPS:] = [f"{len(inside) - NAMED_OPS} more"] if len(inside) > NAMED_OPS else []
    seen = [f"sizes ({' '.join(f'--dim {size}' for size in sizes)})"] if sizes else []
    return f"{AS_SEEN.format(fed)}{', '.join([*seen, *inside])}" if seen or inside else ""


def of_inputs(graph: Graph) -> dict[str, int]:
    """The sizes that inputs have, without those that had to be seen."""
    return {name: size for name, size in graph.dims.items() if _is_given(name, graph)}


def _is_given(dim: str, graph: Graph) -> bool:
    value, place, _ = dim.rpartition(":")
    return not place or value not in graph.values or value in graph.inputs


def _see_sizes(unknown: UnknownSize, dims: Dims, device: Device, fed: Mapping[str, Any] | None) -> dict[str, int]:
    """What the model makes of the values, by a run as far as those."""
    assert unknown.model is not None
    model = up_to(unknown.model, [name for name, _ in unknown.places])
    made = {name for node in model.graph.node for name in node.output}
    any_size = {f"{name}:{max(0, axis)}": 1 for name, axis in unknown.places}
    known = {name: size for name, size in dims.items() if name.rpartition(":")[0] in made}
    graph = graph_of(model, unknown.path, dims={**known, **any_size})
    return _run(graph, unknown.places, device, fed)


def _see_again(
    read: Read, graph: Graph, dims: Dims, seen: Dims, places: Places, device: Device, fed: Mapping[str, Any] | None
) -> Graph:
    """What inputs are fed depends on all that reads them; so the whole is run once more, with what it will be fed."""
    for _ in range(SEEING_ROUNDS):
        made = _run(graph, places, device, fed)
        if not made or made == seen:
            break
        seen = made
        graph = read({**dims, **seen})
    return graph


def _run(graph: Graph, places: Places, device: Device, fed: Mapping[str, Any] | None) -> dict[str, int]:
    """The sizes of values along axes in a run; none where it does not run."""
    ops = ops_of(graph)
    asked = deepcopy(graph.model)
    del asked.graph.value_info[:]
    for size in (dim for given in asked.graph.input for dim in given.type.tensor_type.shape.dim):
        size.Clear()  # feeds have it, and a branch that they do not take may not go with it
    names = list(dict.fromkeys(name for name, _ in places))
    del asked.graph.output[:]
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    feeds = feeds_of(graph, ops) if fed is None else hold_to_inputs(graph, fed, "the feeds")
    try:
        check_room(graph, survey.estimated(ops, "cpu"), device)
    except CannotRun:
        return {}
    with TemporaryDirectory(prefix="remat-") as folder, Bench(feeds, "cpu", TIMEOUT_SECONDS, device.threads) as bench:
        reply = bench.run(in_file(asked, graph.path, Path(folder)), STRICT, outputs="seen.npz")
        if reply.refused or reply.failed:
            return {}
        made = dict(zip(names, bench.results("seen.npz"), strict=True))
    return {
        f"{name}:{axis}": int(made[name].shape[axis])
        for name, asked in places
        for axis in range(made[name].ndim)
        if asked in (axis, EVERY_AXIS)
    }


def up_to(model: onnx.ModelProto, values: Collection[str]) -> onnx.ModelProto:
    """The part of the model that makes the values."""
    kept = leading_to(model.graph.node, values)
    needed = {*values, *(name for node in kept for name in (*node.input, *captures(node)))}
    found = deepcopy(model)
    graph = found.graph
    for held in (graph.input, graph.initializer):
        entries = [entry for entry in held if entry.name in needed]
        del held[:]
        held.extend(entries)
    del graph.node[:], graph.output[:]
    graph.node.extend(kept)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(values))
    return found
