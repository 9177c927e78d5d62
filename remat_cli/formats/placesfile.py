"""Files of places, which `remat_places.h` reads: the requests of a run, in order, each with its place in the block; and
the weights that runs may let go of, each with its place in a file beside.

Invariant: the last line is `end`, so that a file that was cut short is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from remat_cli.errors import BadInput
from remat_cli.formats.files import write_whole
from remat_cli.formats.weights import StoredWeight, Weights
from solvers.placement.placed import Placement

FORMAT = "remat-places 1"
MOST_AXES, LONGEST = 64, 4000  # of a weight, and of a line that tells of one


@dataclass(frozen=True, slots=True)
class PlacesFile:
    placement: Placement
    weights: Weights | None = None


def beside(model: Path) -> Path:
    """Where the places of a model stand: `m.places` of `m.onnx`."""
    return model.with_name(model.name.removesuffix(".onnx") + ".places")


def write(placement: Placement, path: Path, weights: Weights | None = None) -> None:
    head = f"{FORMAT}\nblock {placement.block}\nrequests {len(placement.allocations)}\n"
    lines = "".join(f"{size} {offset}\n" for size, offset in placement.allocations)
    told = [] if weights is None else _told(weights)
    write_whole(path, f"{head}{lines}{''.join(told)}end\n")


def _told(weights: Weights) -> list[str]:
    """The lines of weights; none where a name does not fit into one."""
    name = Path(weights.file).name
    lines = [f"weights {len(weights.stored)} {weights.kept} {name}\n"]
    for one in weights.stored:
        sizes = " ".join(map(str, (len(one.shape), *one.shape)))
        lines.append(f"{one.kind} {one.offset} {one.bytes} {sizes} {one.name}\n")
    plain = all(line.count("\n") == 1 and "\r" not in line and len(line.encode()) < LONGEST for line in lines)
    return lines if plain and all(len(one.shape) <= MOST_AXES for one in weights.stored) else []


def read(path: Path) -> PlacesFile:
    lines = path.read_text().splitlines()
    try:
        said, (_, block), (_, count) = lines[0], *(line.split() for line in lines[1:3])
        pairs, rest = lines[3 : 3 + int(count)], lines[3 + int(count) :]
        allocations = tuple((int(size), int(offset)) for size, offset in (line.split() for line in pairs))
        weights = _weights(rest, path.parent) if rest[0].startswith("weights ") else None
    except (IndexError, ValueError) as error:
        raise BadInput(f"{path} is not a file of places; make one with 'remat places'") from error
    if said != FORMAT or rest[-1] != "end" or len(allocations) != int(count):
        raise BadInput(f"{path} is not a whole file of places; make it anew with 'remat places'")
    return PlacesFile(Placement(int(block), int(block), allocations), weights)


def _weights(lines: Sequence[str], folder: Path) -> Weights:
    _, count, kept, name = lines[0].split(" ", 3)
    return Weights(str(folder / name), int(kept), tuple(_stored(line) for line in lines[1 : 1 + int(count)]))


def _stored(line: str) -> StoredWeight:
    kind, offset, size, rank, rest = line.split(" ", 4)
    *sizes, name = rest.split(" ", int(rank))
    shape = tuple(map(int, sizes))
    return StoredWeight(name, int(kind), int(size) // max(1, prod(shape)), shape, int(offset))
