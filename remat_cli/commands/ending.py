"""What a command says whose time ended before it had anything to say.

Invariant: one line on stderr; stdout stays empty.
"""

from __future__ import annotations

import click


def out_of_time() -> int:
    """The last words, and the exit code."""
    from remat_cli.errors import NoPlan

    click.echo("remat: no plan was found within the time limit; give more time with --time-limit", err=True)
    return NoPlan.code
