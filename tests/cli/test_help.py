"""`--help`: whole lines in 80 columns, options in groups, and the options of one method where it is named."""

from __future__ import annotations

import re
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from remat_cli.commands.helping import GROUPS, OTHER, MethodOption
from remat_cli.main import COMMANDS, remat

WIDTH, MOST_LINES = 80, 45


def help_of(*words: str) -> str:
    found = CliRunner().invoke(remat, [*words, "--help"], terminal_width=WIDTH, catch_exceptions=False)
    assert found.exit_code == 0
    return found.output


def command_of(name: str) -> click.Command:
    command: click.Command = import_module(f"remat_cli.commands.{name.replace('-', '_')}").command
    return command


def test_every_command_has_a_line_of_its_own() -> None:
    said = help_of()
    assert "..." not in said.replace("[ARGS]...", "")
    for name, words in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", said, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal_and_has_an_example(name: str) -> None:
    lines = help_of(name).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert name == "cache" or any(line.startswith(f"  remat {name} ") for line in lines)


def test_the_help_of_solve_is_short() -> None:
    assert len(help_of("solve").splitlines()) <= MOST_LINES


def test_a_methods_options_come_with_its_name() -> None:
    assert "--slots" not in help_of("solve")
    named = help_of("solve", "--method", "rotor")
    assert "--slots" in named
    assert "--snapshots" not in named


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "cache"])
def test_every_option_is_told_once(name: str) -> None:
    said = help_of(name)
    for parameter in command_of(name).params:
        if isinstance(parameter, click.Option) and not isinstance(parameter, MethodOption) and not parameter.hidden:
            longest = max(parameter.opts, key=len)
            assert len(re.findall(rf"^  (-\w, )?{re.escape(longest)}(?![\w-])", said, re.MULTILINE)) == 1, longest


def test_a_group_names_an_option_once() -> None:
    names = [name for members in GROUPS.values() for name in members]
    assert len(names) == len(set(names))
    assert OTHER not in GROUPS
