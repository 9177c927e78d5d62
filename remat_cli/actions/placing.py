"""Places of a model for programs in C, C++ and C#, and the sources of the library that reads them.

Invariant: the places are of a run of the file as it stands, in the session that such a program makes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remat_cli.checking import feeds as feeding
from remat_cli.formats.files import write_whole
from remat_cli.ingest import ingest
from remat_cli.model.graph import Graph
from remat_cli.onnx_graph.attributes import said_in
from remat_cli.runtime.c_session import learned_places
from remat_cli.runtime.placed import Missed
from solvers.placement.placed import Placement

HEADER, SOURCE = "remat_places.h", "places.c"
LIBRARY = "remat_places.c"  # the source as one file
SOURCES = Path(__file__).parents[1] / "runtime"


@dataclass(frozen=True, slots=True)
class Places:
    """`outside`: bytes of inputs and weights, which lie beside the block. `missed`: what of the last run was not as
    planned."""

    placement: Placement
    missed: Missed
    outside: int

    @property
    def held(self) -> int:
        """The bytes that the process holds for a run."""
        return self.outside + self.placement.block


def places_of(
    model: Path, dims: Mapping[str, int], feeds: Path | None = None, seed: int = 0, threads: int = 0
) -> Places:
    """The places of the model's values for programs in C, C++ and C#. `feeds`: a file of inputs, else random ones."""
    graph = ingest(model, dims)
    given = feeding.draw_feeds(graph, seed) if feeds is None else feeding.read_feeds(graph, feeds)
    placement, missed = learned_places(model, given, pairs_in(graph), True, threads)
    return Places(placement, missed, graph.resident)


def pairs_in(graph: Graph) -> dict[str, str]:
    """The outputs that a rewritten model writes over inputs, as its metadata lists them."""
    found: Any = json.loads(said_in(graph.model).get("remat.in_place", "{}"))
    return {str(output): str(taken) for output, taken in found.items()}


def write_sources(folder: Path) -> tuple[Path, Path]:
    """The library's header, and its source in one file."""
    folder.mkdir(parents=True, exist_ok=True)
    header, source = folder / HEADER, folder / LIBRARY
    write_whole(header, (SOURCES / HEADER).read_text())
    write_whole(source, _in_one((SOURCES / SOURCE).read_text()))
    return header, source


def _in_one(text: str) -> str:
    """The source with its parts in the places of their includes; the header is the program's too, and stays apart."""

    def part(found: re.Match[str]) -> str:
        return found[0] if found[1] == HEADER else (SOURCES / found[1]).read_text().rstrip()

    return re.sub(r'#include "(\w+\.h)"', part, text)
