"""docs/reference/commands.md is what the commands say of themselves: `python -m tests.test_commands_page` writes it.

And what a shell completes, by the one line that the page gives.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from remat_cli.commands.methods import options_told
from remat_cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "commands.md"
HEAD = """# Commands

What each command says of itself; a test holds this page to that. Shells complete commands, options, files, methods and
the zoo's networks after one line in `~/.bashrc`:

```bash
eval "$(_REMAT_COMPLETE=bash_source remat)"
```

In `~/.zshrc` it is `zsh_source`; in fish, `_REMAT_COMPLETE=fish_source remat | source`.
"""
WIDTH = 100


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in sorted(COMMANDS):
        found: click.Command = import_module(f"remat_cli.commands.{name.replace('-', '_')}").command
        yield name, found
        if isinstance(found, click.Group):
            yield from ((f"{name} {inner}", command) for inner, command in sorted(found.commands.items()))


def page() -> str:
    parts = [HEAD]
    for name, command in commands():
        wide = {"terminal_width": WIDTH, "max_content_width": WIDTH}
        context = click.Context(command, info_name=f"remat {name}", help_option_names=["-h", "--help"], **wide)
        parts.append(f"## remat {name}\n\n```\n{command.get_help(context)}\n```\n")
    return "\n".join(parts) + of_methods()


def of_methods() -> str:
    """The options that `remat solve --method NAME --help` adds, by option."""
    rows = [
        "",
        "## Options of single methods",
        "",
        "| option of `remat solve` | methods | what it says |",
        "| --- | --- | --- |",
    ]
    for option, methods in options_told().values():
        rows.append(f"| `{option.flag}` | {', '.join(f'`{name}`' for name in methods)} | {option.help} |")
    return "\n".join(rows) + "\n"


def test_the_page_is_what_the_commands_say() -> None:
    """Asked of a process of its own: click keeps what a command's help option is called where it first ran."""
    asked = [sys.executable, "-c", "from tests.test_commands_page import page; print(page(), end='')"]
    said = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert PAGE.read_text() == said, "write it anew: python -m tests.test_commands_page"


@pytest.mark.parametrize(
    "words, offered",
    [
        (["ver"], ["verify"]),
        (["solve", "m.onnx", "--method", "chen-"], ["chen-greedy", "chen-sqrt"]),
        (["sweep", "m.onnx", "--methods", "auto,mil"], ["auto,milp", "auto,milp-paper"]),
        (["zoo", "resnet1"], ["resnet18", "resnet101", "resnet152", "resnet1001"]),
        (["solve", "--work"], ["--work-limit"]),
    ],
)
def test_what_bash_completes(words: list[str], offered: list[str], tmp_path: Path) -> None:
    line = next(line for line in PAGE.read_text().splitlines() if line.startswith("eval "))
    remat = tmp_path / "remat"
    remat.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m remat_cli "$@"\n')
    remat.chmod(0o755)
    typed = " ".join(["remat", *words])
    script = f'{line}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _remat_completion remat; echo "${{COMPREPLY[@]}}"'
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert sorted(said.stdout.split()) == sorted(offered), said.stderr


if __name__ == "__main__":
    PAGE.write_text(page())
