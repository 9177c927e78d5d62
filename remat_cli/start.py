"""Where a process begins that runs the command: signals are heard before anything else is imported."""

from __future__ import annotations

from remat_cli import interrupts


def main() -> None:
    interrupts.command(_run)


def _run() -> None:
    from remat_cli.main import main as command

    command()


if __name__ == "__main__":
    main()
