"""docs/methods.md: its table is the registry, its options are those of the command."""

from __future__ import annotations

from pathlib import Path

from remat_cli.commands.solve import command
from solvers.registry import METHODS

PAGE = Path(__file__).parents[1] / "docs" / "methods.md"
FLAGS = {str(param.name): param.opts[0] for param in command.params} | {"candidates": "--from"}
UNASKED = {"paper"}  # what the command decides by itself: no budget means the paper's cut


def spelt() -> list[str]:
    """The table as the page should have it."""
    lines = [
        "| method | what it does | any graph | costs | memory | proof | 2000 nodes | options |",
        "| --- " * 8 + "|",
    ]
    for name, method in METHODS.items():
        marks = (method.general, method.cost_aware, method.memory_aware, method.proof)
        options = ", ".join(f"`{FLAGS[option]}`" for option in method.options if option not in UNASKED)
        cells = [f"`{name}`", method.says, *("yes" if mark else "" for mark in marks), method.typical, options]
        lines.append("| " + " | ".join(cells) + " |")
    return [" ".join(line.split()) for line in lines]


def test_the_table_is_the_registry() -> None:
    assert [line for line in PAGE.read_text().splitlines() if line.startswith("| ")] == spelt()


def test_every_method_is_told_apart_in_words() -> None:
    words = PAGE.read_text().split("## When to use which")[1]
    assert [name for name in METHODS if f"`{name}`" not in words] == []
