"""docs/reference/methods.md: its table is the registry, its options are those of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from remat_cli.commands.helping import MethodOption
from remat_cli.commands.solve import command
from solvers.options import options_of
from solvers.registry import METHODS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "methods.md"


def spelt() -> list[str]:
    """The table as the page should have it."""
    lines = [
        "| method | what it does | any graph | costs | memory | proof | 2000 nodes | options |",
        "| --- " * 8 + "|",
    ]
    for name, method in METHODS.items():
        marks = (method.general, method.cost_aware, method.memory_aware, method.proof)
        options = ", ".join(f"`{option.flag}`" for option in options_of(method.options))
        cells = [f"`{name}`", method.says, *("yes" if mark else "" for mark in marks), method.typical, options]
        lines.append("| " + " | ".join(cells) + " |")
    return [" ".join(line.split()) for line in lines]


def test_the_table_is_the_registry() -> None:
    first = PAGE.read_text().split("## When to use which")[0]
    assert [line for line in first.splitlines() if line.startswith("| ")] == spelt()


def test_every_method_is_told_apart_in_words() -> None:
    words = PAGE.read_text().split("## When to use which")[1]
    assert [name for name in METHODS if f"`{name}`" not in words] == []


@pytest.mark.parametrize("name", METHODS)
def test_every_option_is_a_flag_with_its_help(name: str) -> None:
    for option in options_of(METHODS[name].options):
        flag = next(param for param in command.params if option.flag in param.opts)
        assert isinstance(flag, MethodOption)
        assert option.help.lower() in (flag.help or "").lower()
        assert name in flag.owners


def test_what_a_method_cannot_be_told_is_refused() -> None:
    for method, given in (("rotor", {"slots": 0}), ("rotor", {"slots": "9"}), ("min-cut", {"objective": "space"})):
        with pytest.raises(ValueError, match=next(iter(given))):
            METHODS[method].load(**given)
    with pytest.raises(ValueError, match="there are: slots"):
        METHODS["rotor"].load(samples=3)
