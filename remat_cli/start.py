"""Where a process begins that runs the command: signals are heard before anything else is imported."""

from __future__ import annotations

from remat_cli import in_the_way, interrupts


def main() -> None:
    interrupts.command(_run)


def _run() -> None:
    try:
        from remat_cli.main import main as command

        command()
    except ImportError:
        if found := in_the_way():
            raise SystemExit(f"remat: {found}") from None
        raise


if __name__ == "__main__":
    main()
