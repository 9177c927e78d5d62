"""What a command says whose time ended before it had anything to say.

Invariant: one line on stderr; stdout stays empty, but for the same in JSON where that is asked for.
"""

from __future__ import annotations

import json

import click


def out_of_time(as_json: bool = False) -> int:
    """The last words, and the exit code."""
    from remat_cli.errors import NoPlan, error_in

    error = NoPlan("no plan was found within the time limit; give more time with --time-limit")
    if as_json:
        click.echo(json.dumps(error_in({}, error)))
    click.echo(f"remat: {error}", err=True)
    return NoPlan.code
