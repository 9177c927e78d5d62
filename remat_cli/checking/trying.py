"""Measures the memory of a model in a session: its first run, and by default a later one, laid out by a memory pattern.

Invariant: the figures come from a process of its own, by the runtime's count; there are none where the model does not
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from remat_cli.checking import in_all
from remat_cli.checking.processes import Bench, InPlace
from remat_cli.model.graph import Graph
from remat_cli.model.sessions import DEFAULT, Session
from remat_cli.rewrite.external import bring

Peaks = tuple[int, int]  # bytes, inputs and weights included: of the first run, of later ones


def peaks(
    graph: Graph,
    model: onnx.ModelProto | Path,
    feeds: Mapping[str, Any],
    threads: int,
    timeout: float,
    session: Session = DEFAULT,
) -> Peaks | None:
    """The peaks of `graph` without a plan, or of a model that was made from it, its outputs in the places of inputs;
    without later runs both figures are the first's."""
    with TemporaryDirectory(prefix="remat-") as folder, Bench(feeds, "cpu", timeout, threads) as bench:
        path = model if isinstance(model, Path) else in_file(model, graph.path, Path(folder))
        bound = InPlace(graph.in_place, bool(graph.in_place))
        measured = in_all(graph, bench.run(path, session, session.runs, in_place=bound))
    return None if measured.first is None else (measured.first, measured.second or measured.first)


def in_file(model: onnx.ModelProto, source: Path, folder: Path) -> Path:
    """A model that was read from `source`, written to a file that other processes can read."""
    path = folder / "model.onnx"
    copy = deepcopy(model)
    bring(copy, source, path)
    path.write_bytes(copy.SerializeToString())
    return path
