"""`remat cache`: the results that are kept so that nothing is searched for twice: listed, checked, pruned."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from remat_cli.commands import options
from remat_cli.errors import BadInput
from remat_cli.results.store import Entry, Store, folder, too_many
from remat_cli.saying.tables import table
from remat_cli.units import show_bytes


@click.group("cache", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """The results that `solve`, `sweep` and `batch` keep in the user's cache directory.

    REMAT_RESULTS names another folder, or `off` for none. Any number of processes may use one folder.
    """


@command.command("list")
@options.as_json
def list_entries(as_json: bool) -> None:
    """What is kept, those that were used last first."""
    found = list(_store().entries())
    if as_json:
        options.say_object({"folder": _place(), "entries": [_object(entry) for entry in found]})
        return
    if found:
        click.echo(_table(found))
    click.echo(f"{_count(found)} in {_place() or 'no folder: REMAT_RESULTS is off'}")


@command.command()
@options.as_json
def check(as_json: bool) -> None:
    """Read every entry whole; exit code 3 if one is damaged, which `solve` and the others pass over."""
    found = list(_store().entries(whole=True))
    damaged = [entry for entry in found if entry.wrong]
    if as_json:
        options.say_object({"folder": _place(), "whole": len(found) - len(damaged), "damaged": _paths(damaged)})
    else:
        for entry in damaged:
            click.echo(f"{entry.path}: {entry.wrong}")
        click.echo(f"{_count([entry for entry in found if not entry.wrong])} whole")
    if damaged:
        raise BadInput(f"{len(damaged)} damaged results are passed over; `remat cache prune` removes them")


@command.command()
@click.option("--older", type=options.AGE, help="Also what was not used for so long: 30d, 12h.")
@click.option("--max-size", type=options.BYTES, help="Also what was used least lately, until no more is left: 500MB.")
@click.option("--all", "everything", is_flag=True, help="Everything.")
@options.as_json
def prune(older: float | None, max_size: int | None, everything: bool, as_json: bool) -> None:
    """Remove what is damaged, what another version of remat or its solvers found, and what was left half-written."""
    from remat_cli.results.versions import versions

    def current(entry: Entry) -> bool:
        return not everything and entry.about.get("versions") == versions()

    store = _store()
    gone = list(too_many(store.entries(whole=True), current, older, max_size))
    parts = list(store.leftovers(time.time()))
    for path in (*(entry.path for entry in gone), *parts):
        path.unlink(missing_ok=True)
    if as_json:
        options.say_object({"folder": _place(), "removed": _paths(gone), "half_written": len(parts)})
    else:
        click.echo(f"removed {_count(gone)}" + (f", and {len(parts)} half-written files" if parts else ""))


def _store() -> Store:
    return Store(folder())


def _place() -> str | None:
    place = folder()
    return None if place is None else str(place)


def _paths(entries: Iterable[Entry]) -> list[str]:
    return [str(entry.path) for entry in entries]


def _object(entry: Entry) -> dict[str, Any]:
    said = {"path": str(entry.path), "bytes": entry.bytes, "used": round(entry.used), **entry.about}
    return {**said, "damaged": entry.wrong} if entry.wrong else said


def _count(entries: Sequence[Entry]) -> str:
    return f"{len(entries)} results, {show_bytes(sum(entry.bytes for entry in entries))}"


def _table(entries: Iterable[Entry]) -> str:
    rows = [["key", "model", "method", "session", "budget", "status", "overhead", "used"]]
    for entry in entries:
        about = entry.about
        budget, overhead = about.get("budget"), about.get("overhead")
        rows.append(
            [
                Path(entry.path.name).name[:10],
                *(str(about.get(name, "-")) for name in ("model", "method", "session")),
                show_bytes(budget) if isinstance(budget, int) else "-",
                entry.wrong or str(about.get("status", "-")),
                f"{overhead:+.2%}" if isinstance(overhead, float) else "-",
                time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used)),
            ]
        )
    return table(rows, left=(0, 1, 2, 3, 5, 7))
