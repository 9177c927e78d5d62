"""The README tells the truth: its commands exist with those options, and it lists every command and exit code."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

from remat_cli import errors
from remat_cli.main import COMMANDS
from remat_cli.runtime.session import PYTHON

README = (Path(__file__).parents[1] / "README.md").read_text()
LINES = re.findall(r"^\$ (remat .*)$", README, flags=re.M)


def command(name: str) -> click.Command:
    found: click.Command = import_module(f"remat_cli.commands.{name}").command
    return found


def test_there_are_commands_to_check() -> None:
    assert len(LINES) >= 8


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_readme_parses(line: str) -> None:
    _, name, *args = shlex.split(line)
    command(name).make_context(name, args)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_listed(name: str) -> None:
    assert f"| `remat {name}" in README
    assert command(name).help


def test_exit_codes_are_listed() -> None:
    for kind in (errors.Usage, errors.BadInput, errors.Infeasible, errors.NoPlan, errors.Mismatch):
        assert f"{kind.code} " in README


def test_the_strict_session_is_spelled_as_it_is() -> None:
    assert PYTHON in README
