"""Files of places, which `remat_places.h` reads: the requests of a run, in order, each with its place in the block.

Invariant: the last line is `end`, so that a file that was cut short is none.
"""

from __future__ import annotations

from pathlib import Path

from remat_cli.formats.files import write_whole
from solvers.placement.largest import Placement

FORMAT = "remat-places 1"


def write(placement: Placement, path: Path) -> None:
    head = f"{FORMAT}\nblock {placement.block}\nrequests {len(placement.allocations)}\n"
    lines = "".join(f"{size} {offset}\n" for size, offset in placement.allocations)
    write_whole(path, f"{head}{lines}end\n")
