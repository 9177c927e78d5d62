"""What `show` does once its flags are read: words, objects, pictures and pages of plans and models."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from remat_cli.commands import options
from remat_cli.errors import Usage
from remat_cli.formats import curvefile
from remat_cli.formats.files import write_whole
from remat_cli.formats.kinds import FileKind, check_places
from remat_cli.saying import several, showing
from remat_cli.saying.chart import Style, chart
from remat_cli.saying.page import page
from remat_cli.saying.pictures.bars import draw_bars
from remat_cli.saying.pictures.canvas import check_picture
from remat_cli.saying.pictures.matrices import draw_matrices
from remat_cli.saying.pictures.memory import draw_memory
from remat_cli.saying.progress import has_colors
from remat_cli.saying.several import bars
from remat_cli.saying.showing import Shown, heading, shown


def show(files: tuple[Path, ...], given: Mapping[str, Any]) -> None:
    """Show the files in every form that is asked for."""
    plot, matrices, web, curve = (given[name] for name in ("plot", "matrices", "web", "curve"))
    _check_forms(files, given)
    for picture in filter(None, (plot, matrices)):
        check_picture(picture)
    written = ((plot, FileKind.PICTURE), (matrices, FileKind.PICTURE), (web, FileKind.PAGE))
    check_places(written, *files, curve)
    every = [shown(path, given["costs"], dict(given["dims"]), given["fusion"]) for path in files]
    check_places(written, *(found.subject.path for found in every))
    _draw(every, plot, matrices, given["breakdown"])
    if web:
        write_whole(web, page(every[0], curvefile.read(curve) if curve else None))
    if given["as_json"]:
        options.say_object(_object(every, given))
    elif not given["quiet"]:
        click.echo(_words(every, given))
    if not any(given[name] for name in ("quiet", "as_json", "as_csv", "statements")):
        for path in filter(None, (plot, matrices, web)):
            click.echo(f"wrote {path}")


def _check_forms(files: tuple[Path, ...], given: Mapping[str, Any]) -> None:
    """Refuse flags that show one file where several are given, and forms of what is not shown."""
    for name, flag in (("statements", "--statements"), ("matrices", "--matrices"), ("web", "--html")):
        if given[name] and len(files) > 1:
            raise Usage(f"{flag} shows one file; {len(files)} are given")
    if given["as_csv"] and (not given["breakdown"] or given["as_json"]):
        raise Usage("--csv prints the table of --breakdown; for all else there is --json")
    forms = [f"--{name}" for name in ("breakdown", "chart", "statements") if given[name]]
    if len(forms) > 1 and not given["as_json"]:
        raise Usage(f"{' and '.join(forms)} are printed one at a time; name one of them")
    if given["curve"] and not given["web"]:
        raise Usage("--curve goes into the page that --html writes; say where with --html FILE")


def _draw(every: list[Shown], plot: Path | None, matrices: Path | None, breakdown: bool) -> None:
    if plot and breakdown:
        draw_bars(plot, bars(every))
    elif plot:
        draw_memory(plot, every)
    if matrices:
        draw_matrices(matrices, every[0])


def _object(every: list[Shown], given: Mapping[str, Any]) -> dict[str, Any]:
    if given["breakdown"]:
        return {"bars": [bar.as_object() for bar in several.bars(every)]}
    objects = [showing.as_object(found, given["statements"]) for found in every]
    return objects[0] if len(objects) == 1 else {"shown": objects}


def _words(every: list[Shown], given: Mapping[str, Any]) -> str:
    if given["breakdown"]:
        return several.breakdowns(several.bars(every), given["as_csv"])
    if given["chart"]:
        return "\n\n".join(map(_chart, every))
    if given["statements"]:
        return showing.program(every[0])
    return showing.summary(every[0]) if len(every) == 1 else several.comparison(every)


def _chart(found: Shown) -> str:
    """Drawn as wide as the terminal is, with what letters and colours it has."""
    try:
        blocks = bool("█╌".encode(sys.stdout.encoding or "ascii"))
    except UnicodeEncodeError:
        blocks = False
    style = Style(min(120, get_terminal_size().columns), blocks=blocks, colors=has_colors(sys.stdout))
    return heading(found) + "\n" + chart(found.lines[1], found.recorded.budget if found.recorded else None, style)
