"""`remat`: finds the command, runs it, and turns what goes wrong into one line and an exit code.

Invariant: importing this imports nothing heavy; every command imports what it needs when it runs.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from contextlib import suppress
from errno import ENOENT
from importlib import import_module
from typing import NoReturn

import click

from remat_cli.errors import BadInput, RematError, Usage, meant
from remat_cli.interrupts import ANSWER

COMMANDS = {  # in the order in which they are used; the words that `remat --help` has for each
    "grad": "Turn a forward model into a training graph.",
    "profile": "Measure what each op costs, or estimate it.",
    "solve": "Find the fastest plan within a memory budget.",
    "sweep": "Solve for many budgets and print the curve.",
    "max-batch": "Find the largest batch that fits a budget.",
    "emit": "Write the rewritten model of a plan.",
    "places": "Find where values lie, for programs in C, C++ and C#.",
    "shrink": "Run a model in less memory: every way tried, one table.",
    "verify": "Run both models: same results, memory as planned?",
    "check": "Check the proof of a plan without a solver.",
    "show": "Show what fills the memory of a plan or a model.",
    "problem": "Write the bare scheduling problem of a model.",
    "batch": "Solve many models, budgets and methods, for CI.",
    "cache": "List, check and prune the results that are kept.",
    "zoo": "Build a well-known network as a forward model.",
}


class Commands(click.Group):
    """Commands are modules of `remat_cli.commands`, each with one click command named `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Without importing any command, so that help comes at once."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            raise click.UsageError(f"there is no command '{cmd_name}'; {meant(cmd_name, COMMANDS)}", ctx)
        command: click.Command = import_module(f"remat_cli.commands.{cmd_name.replace('-', '_')}").command
        return command


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version and exit."""
    if not asked:
        return
    from importlib import metadata

    try:
        version = metadata.version("remat")
    except metadata.PackageNotFoundError:  # run from its sources
        version = "(not installed)"
    click.echo(f"remat {version}")
    ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Say which remat this is."
)
def remat() -> None:
    """Fit a training step into a memory budget, at the least extra time.

    Reads an ONNX training graph, decides which values to keep and which to compute again, and writes a graph that runs
    that way in stock ONNX Runtime.
    """


def main(begun: float | None = None) -> None:
    """Run the command; `begun`: since when its time counts, by `time.monotonic`, if not from when it first asks.

    Exit codes: 0 done, 1 our bug, 2 usage, 3 bad input, 4 infeasible, 5 no plan, 6 mismatch."""
    out, ANSWER.begun = sys.stdout, False
    try:
        code = remat.main(prog_name="remat", standalone_mode=False, obj=begun)
        sys.stdout.flush()
        sys.exit(code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        line = _one_line(error)
        _tell({"code": error.exit_code, "kind": Usage.kind, "says": line}, line)
        sys.exit(error.exit_code)
    except RematError as error:
        _tell(error.as_object(), f"remat: {error}")
        sys.exit(error.code)
    except (click.Abort, KeyboardInterrupt):
        _tell({"code": 130, "kind": "interrupted", "says": "interrupted"}, "remat: interrupted")
        sys.exit(130)
    except BrokenPipeError:  # whoever read the answer has had enough
        _hush()
        sys.exit(0)
    except SystemExit:
        if sys.stdout is out:
            raise
        _hush()  # click takes a reader that has gone for an error, and puts a stand-in where stdout was
        sys.exit(0)
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        _end("ONNX Runtime is not installed: pip install 'remat[runtime]', or onnxruntime of the kind that you want", 3)
    except UnicodeEncodeError as error:
        _end(f"a name holds {error.object[error.start : error.end]!r}, which is no text", 3)
    except MemoryError:
        _end("there is not enough memory for this", 3)
    except OSError as error:
        nameless = "find the working directory" if error.errno == ENOENT else "write the answer"
        lost = f"read or write {error.filename}" if error.filename else nameless
        _end(f"cannot {lost}: {error.strerror}", 3)
    except ImportError:  # whoever started us looks whether a file of the user's is in the way
        raise
    except Exception as error:  # noqa: BLE001  whatever it is, who asks for JSON gets an object
        traceback.print_exc()
        says = f"this is a bug in remat, please report the lines above: {type(error).__name__}: {error}"
        _tell({"code": 1, "kind": "bug", "says": says}, f"remat: {says}")
        sys.exit(1)


def _tell(error: dict[str, object], line: str) -> None:
    """What went wrong: a line for people, and for who asked for JSON an object, where none was printed."""
    with suppress(OSError):  # where nothing can be written any more
        click.echo(line, err=True)  # first: stdout may take nothing any more
        if "--json" in sys.argv[1:] and not ANSWER.begun:
            ANSWER.say(json.dumps({"error": error}))


def _end(said: str, code: int) -> NoReturn:
    _tell({"code": code, "kind": BadInput.kind, "says": said}, f"remat: {said}")
    _hush()
    sys.exit(code)


def _hush() -> None:
    """Nothing more is written to where nothing can be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(error: click.ClickException) -> str:
    """What a wrong option or argument gets: which command, what is wrong, where to look."""
    command = getattr(error, "ctx", None)
    path = command.command_path if command else "remat"
    return f"{path}: {error.format_message().rstrip('.')} (see {path} --help)"


if __name__ == "__main__":
    main()
