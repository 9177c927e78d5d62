"""`remat places`: where each value of a model lies, for programs in C, C++ and C#."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.formats.kinds import FileKind, check_place
from remat_cli.units import show_bytes

if TYPE_CHECKING:
    from remat_cli.actions.placing import Places


@click.command(cls=options.GroupedCommand)
@click.argument("model", type=options.FILE)
@click.option("--feeds", type=options.FILE, help="Inputs as an .npz file; by default random and valid.")
@options.dims
@options.seed
@click.option("--threads", type=click.IntRange(1), help="Of one op, as the program sets it; by default all cores.")
@click.option("--sources", type=options.FOLDER, help="Also write the library there: remat_places.h and remat_places.c.")
@options.output
@options.as_json
@options.quiet
def command(model: Path, output: Path | None, sources: Path | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Find a place in one block of memory for each value of MODEL, and write MODEL.places.

    MODEL is run three times in the session that a program in C, C++ or C# makes. The program opens the file with
    remat_places.h, and holds the block, inputs and weights, and no more.

    \b
    remat places train.remat.onnx
    remat places net.onnx --sources remat_places
    """
    from remat_cli.actions import placing
    from remat_cli.formats import placesfile

    destination = output or placesfile.beside(model)
    check_place(destination, FileKind.PLACES, model)
    found = placing.places_of(model, dict(given["dims"]), given["feeds"], given["seed"], given["threads"] or 0)
    placesfile.write(found.placement, destination)
    written = [str(path) for path in placing.write_sources(sources)] if sources else []
    if as_json:
        options.say_object(_object(found, destination, written))
    elif not quiet:
        click.echo(_words(found, destination, written))


def _object(found: Places, destination: Path, written: list[str]) -> dict[str, Any]:
    return {
        "places": str(destination),
        "requests": len(found.placement.allocations),
        "block": found.placement.block,
        "bound": found.placement.bound,
        "outside": found.outside,
        "held": found.held,
        "missed": found.missed.requests,
        "missed_bytes": found.missed.bytes,
        "sources": written,
    }


def _words(found: Places, destination: Path, written: list[str]) -> str:
    placement = found.placement
    block = f"a block of {show_bytes(placement.block)}"
    if placement.block > placement.bound:
        block += f" for {show_bytes(placement.bound)} live at once"
    said = [f"held by the process: {show_bytes(found.held)}: {block}, {show_bytes(found.outside)} inputs and weights"]
    if found.missed.requests:
        few = f"{found.missed.requests} requests of {show_bytes(found.missed.bytes)}"
        said.append(f"note: sizes vary from run to run: {few} were not as planned and had memory of their own")
    said.append(f"wrote {destination}: {len(placement.allocations)} requests")
    if written:
        compiled = f"cc -O2 -std=c11 -fPIC -shared -o libremat_places.so {written[1]} -lpthread -ldl"
        said.append(f"wrote {' and '.join(written)}; compile them into the program, or: {compiled}")
    return "\n".join(said)
