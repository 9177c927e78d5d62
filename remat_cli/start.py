"""Where a process begins that runs the command: signals are heard before anything else is imported."""

from __future__ import annotations

import gc
import sys

from remat_cli import in_the_way, interrupts

COLLECTING = 100_000, 50, 100  # graphs are many objects that stay: to look through them often takes a fifth of the time
UNUSABLE = 3  # the exit code of files that cannot be used


def main() -> None:
    interrupts.command(_run)


def _run() -> None:
    gc.set_threshold(*COLLECTING)
    if found := in_the_way():
        print(f"remat: {found}", file=sys.stderr)
        raise SystemExit(UNUSABLE)
    from remat_cli.main import main as command

    command()


if __name__ == "__main__":
    main()
