"""Where a process begins that runs the command: signals are heard before anything else is imported, limits of time
count from here, and the process ends without being taken apart.

Invariant: what was printed is out and what was to be done at the end is done, before the process is left.
"""

from __future__ import annotations

from time import monotonic

BEGUN = monotonic()  # imports take seconds on a busy machine: they count too

import atexit  # noqa: E402
import gc  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from contextlib import suppress  # noqa: E402

from remat_cli import in_the_way, interrupts  # noqa: E402

COLLECTING = 100_000, 50, 100  # graphs are many objects that stay: to look through them often takes a fifth of the time
UNUSABLE = 3  # the exit code of files that cannot be used


def main() -> None:
    _open_streams()
    try:
        interrupts.command(_run)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _leave(end.code or 0)


def _open_streams() -> None:
    """Streams that are closed lead nowhere: else the next file that is opened takes the number of one, and what
    libraries print goes into that file."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  to the end of the process


def _leave(code: int) -> None:
    """To take a process apart, thousands of objects and some libraries, takes a tenth of a second of its processor."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # whoever wrote there has said so
            stream.flush()
    os._exit(code)


def _run() -> None:
    gc.set_threshold(*COLLECTING)
    if found := in_the_way():
        print(f"remat: {found}", file=sys.stderr)
        raise SystemExit(UNUSABLE)
    from remat_cli.main import main as command

    command(BEGUN)


if __name__ == "__main__":
    main()
