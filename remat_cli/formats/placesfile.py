"""Files of places, which `remat_places.h` reads: the requests of a run, in order, each with its place in the block.

Invariant: the last line is `end`, so that a file that was cut short is none.
"""

from __future__ import annotations

from pathlib import Path

from remat_cli.errors import BadInput
from remat_cli.formats.files import write_whole
from solvers.placement.largest import Placement

FORMAT = "remat-places 1"


def beside(model: Path) -> Path:
    """Where the places of a model stand: `m.places` of `m.onnx`."""
    return model.with_name(model.name.removesuffix(".onnx") + ".places")


def write(placement: Placement, path: Path) -> None:
    head = f"{FORMAT}\nblock {placement.block}\nrequests {len(placement.allocations)}\n"
    lines = "".join(f"{size} {offset}\n" for size, offset in placement.allocations)
    write_whole(path, f"{head}{lines}end\n")


def read(path: Path) -> Placement:
    lines = path.read_text().splitlines()
    try:
        said, (_, block), (_, count), *pairs, end = lines[0], *(line.split() for line in lines[1:])
        allocations = tuple((int(size), int(offset)) for size, offset in pairs)
    except (IndexError, ValueError) as error:
        raise BadInput(f"{path} is not a file of places; make one with 'remat places'") from error
    if said != FORMAT or end != ["end"] or len(allocations) != int(count):
        raise BadInput(f"{path} is not a whole file of places; make it anew with 'remat places'")
    return Placement(int(block), int(block), allocations)
