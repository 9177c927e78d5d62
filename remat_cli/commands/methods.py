"""Which methods, what they can be told and what they are: the flags that name them, one for each of their options, and
the list of `solve --list`.

Invariant: all of it is read from the registry and the methods' records; no method is named here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

import click

from remat_cli.commands import options
from remat_cli.commands.helping import MethodOption
from remat_cli.saying.tables import table
from solvers.options import Option, Orders, options_of
from solvers.registry import DEFAULT, METHODS

ALL = "all"  # stands for every method
Command = TypeVar("Command", bound=Callable[..., Any])


def _offer(*besides: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell offers for methods, of which there may be several with commas between them."""

    def offer(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        before, comma, last = begun.rpartition(",")
        return [before + comma + name for name in (*METHODS, *besides) if name.startswith(last)]

    return offer


one = click.option(
    "--method", shell_complete=_offer(), default=DEFAULT, show_default=True, help="One of `remat solve --list`."
)
one_or_all = click.option(
    "--method",
    shell_complete=_offer(ALL),
    is_eager=True,  # so that `--method NAME --help` knows the name
    help=f"A method of --list, or all.  [default: {DEFAULT}]",
)
several = click.option(
    "--methods",
    shell_complete=_offer(),
    default=DEFAULT,
    show_default=True,
    help="Of `remat solve --list`, separated by commas.",
)
baselines = click.option(
    "--baselines",
    shell_complete=_offer(),
    help="Methods to say the same of, separated by commas; '' for none.  [default: four]",
)


def methods_named(words: str) -> tuple[str, ...]:
    """The methods in a list with commas."""
    return tuple(name.strip() for name in words.split(",") if name.strip())


def options_told() -> dict[str, tuple[Option, list[str]]]:
    """Every option that some method has, and whose it is; what several share is one flag."""
    found: dict[str, tuple[Option, list[str]]] = {}
    for name, method in METHODS.items():
        for entry in options_of(method.options):
            found.setdefault(entry.name, (entry, []))[1].append(name)
    return found


def _flag(entry: Option, methods: list[str]) -> Callable[[Command], Command]:
    shared: dict[str, Any] = {
        "cls": MethodOption,
        "owners": tuple(methods),
        "help": f"{entry.help[0].upper()}{entry.help[1:]}.",
    }
    if entry.kind == Orders:
        return click.option(entry.flag, "known", type=options.FILE, multiple=True, **shared)
    if entry.kind is bool:
        return click.option(entry.flag, is_flag=True, default=None, **shared)
    kind = click.Choice(entry.choices) if entry.choices else click.IntRange(entry.least)
    return click.option(entry.flag, type=kind, **shared)


def own_options(command: Command) -> Command:
    """A flag for each option of the methods, read from their records."""
    for entry, methods in reversed(options_told().values()):
        command = _flag(entry, methods)(command)
    return command


def list_methods(as_json: bool) -> None:
    """Print the registry as a table, with the columns of Checkmate's Table 1, or as JSON."""
    if as_json:
        return options.say_object({name: _describe(name) for name in METHODS})
    rows = [["method", "general", "cost", "memory", "proof", "2000 nodes", "what it does"]]
    for name, method in METHODS.items():
        marks = (method.general, method.cost_aware, method.memory_aware, method.proof)
        rows.append([name, *("yes" if mark else "-" for mark in marks), method.typical, method.says])
    click.echo(table(rows, left=(0, 6)))


def _describe(name: str) -> dict[str, Any]:
    method = METHODS[name]
    said = {key: value for key, value in asdict(method).items() if key not in ("place", "options", "unbudgeted")}
    return {
        **said,
        "needs_budget": method.needs_budget,
        "options": [entry.name for entry in options_of(method.options)],
    }
