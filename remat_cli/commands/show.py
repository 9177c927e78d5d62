"""`remat show`: plans, and models as they stand, as a summary, as statements, or as pictures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from remat_cli.commands import options
from remat_cli.errors import Usage
from remat_cli.formats.kinds import FileKind, check_place

if TYPE_CHECKING:
    from remat_cli.saying.showing import Shown


@click.command(cls=options.GroupedCommand)
@click.argument("files", type=options.FILE, nargs=-1, required=True)
@click.option("--statements", is_flag=True, help="Print the program: one statement a line.")
@click.option("--breakdown", is_flag=True, help="What fills the memory at the peak of each; with --plot, as bars.")
@click.option("--chart", is_flag=True, help="Draw memory over time as text.")
@click.option("--plot", type=options.FILE, help="Draw memory over time into a .png, .svg or .pdf file.")
@click.option("--matrices", type=options.FILE, help="Draw what each stage computes (R) and finds in memory (S).")
@click.option("--html", "web", type=options.FILE, help="Write one page to look at in a browser; it needs no network.")
@click.option("--curve", type=options.FILE, help="With --html: what `remat sweep --json` printed, to be drawn there.")
@click.option("--csv", "as_csv", is_flag=True, help="With --breakdown: comma-separated values on stdout.")
@click.option(
    "--fusion", type=options.FUSION, default="ideal", help="Bytes moved if all is fused, or as onnxruntime does."
)
@click.option("--costs", type=options.FILE, help="Of a model: what its ops cost; by default MODEL.costs.yaml.")
@options.dims
@options.as_json
@options.quiet
def command(files: tuple[Path, ...], **given: Any) -> None:
    """Show what each plan of FILES does; of models and problems, what they need as they stand.

    \b
    remat show train.plan.json
    remat show train.plan.json --plot memory.png --html train.html
    remat show *.onnx --breakdown
    """
    from remat_cli.saying.showing import shown

    plot, matrices, web, curve = (given[name] for name in ("plot", "matrices", "web", "curve"))
    _check_forms(files, given)
    pictures = [picture for picture in (plot, matrices) if picture]
    written = dict.fromkeys(pictures, FileKind.PICTURE) | ({web: FileKind.PAGE} if web else {})
    _check(pictures, [*pictures, *([web] if web else [])])
    _check_places(written, [*files, *([curve] if curve else [])])
    every = [shown(path, given["costs"], dict(given["dims"]), given["fusion"]) for path in files]
    _check_places(written, [found.subject.path for found in every])
    _draw(every, plot, matrices, given["breakdown"])
    if web:
        _write_page(every[0], web, curve)
    if given["as_json"]:
        options.say_object(_object(every, given))
    elif not given["quiet"]:
        click.echo(_words(every, given))
    if not any(given[name] for name in ("quiet", "as_json", "as_csv", "statements")):
        for path in written:
            click.echo(f"wrote {path}")


def _check_forms(files: tuple[Path, ...], given: Mapping[str, Any]) -> None:
    """Refuse flags that show one file where several are given, and forms of what is not shown."""
    for name, flag in (("statements", "--statements"), ("matrices", "--matrices"), ("web", "--html")):
        if given[name] and len(files) > 1:
            raise Usage(f"{flag} shows one file; {len(files)} are given")
    if given["as_csv"] and (not given["breakdown"] or given["as_json"]):
        raise Usage("--csv prints the table of --breakdown; for all else there is --json")
    if given["curve"] and not given["web"]:
        raise Usage("--curve goes into the page that --html writes; say where with --html FILE")


def _check(pictures: list[Path], written: list[Path]) -> None:
    """Say what cannot be drawn before anything is read."""
    places = [path.resolve() for path in written]
    if twice := next((path for path in written if places.count(path.resolve()) > 1), None):
        raise Usage(f"{twice} would be written twice; name another file")
    if pictures:
        from remat_cli.saying.pictures.canvas import check_picture

        for path in pictures:
            check_picture(path)


def _check_places(written: Mapping[Path, FileKind], inputs: list[Path]) -> None:
    """Say what would be lost before anything is drawn."""
    for path, kind in written.items():
        check_place(path, kind, *inputs)


def _write_page(found: Shown, path: Path, curve: Path | None) -> None:
    from remat_cli.formats import curvefile
    from remat_cli.formats.files import write_whole
    from remat_cli.saying.page import page

    write_whole(path, page(found, curvefile.read(curve) if curve else None))


def _draw(every: list[Shown], plot: Path | None, matrices: Path | None, breakdown: bool) -> None:
    if plot and breakdown:
        from remat_cli.saying.pictures.bars import draw_bars
        from remat_cli.saying.several import bars

        draw_bars(plot, bars(every))
    elif plot:
        from remat_cli.saying.pictures.memory import draw_memory

        draw_memory(plot, every)
    if matrices:
        from remat_cli.saying.pictures.matrices import draw_matrices

        draw_matrices(matrices, every[0])


def _object(every: list[Shown], given: Mapping[str, Any]) -> dict[str, Any]:
    from remat_cli.saying import several, showing

    if given["breakdown"]:
        return {"bars": [bar.as_object() for bar in several.bars(every)]}
    objects = [showing.as_object(found, given["statements"]) for found in every]
    return objects[0] if len(objects) == 1 else {"shown": objects}


def _words(every: list[Shown], given: Mapping[str, Any]) -> str:
    from remat_cli.saying import several, showing

    if given["breakdown"]:
        return several.breakdowns(several.bars(every), given["as_csv"])
    if given["chart"]:
        return "\n\n".join(map(_chart, every))
    if given["statements"]:
        return showing.program(every[0])
    return showing.summary(every[0]) if len(every) == 1 else several.comparison(every)


def _chart(found: Shown) -> str:
    """Drawn as wide as the terminal is, with what letters and colours it has."""
    from remat_cli.saying.chart import Style, chart
    from remat_cli.saying.progress import has_colors
    from remat_cli.saying.showing import heading

    try:
        blocks = bool("█╌".encode(sys.stdout.encoding or "ascii"))
    except UnicodeEncodeError:
        blocks = False
    style = Style(min(120, get_terminal_size().columns), blocks=blocks, colors=has_colors(sys.stdout))
    return heading(found) + "\n" + chart(found.lines[1], found.recorded.budget if found.recorded else None, style)
