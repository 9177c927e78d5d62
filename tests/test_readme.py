"""The README and the pages tell the truth: their commands exist with those options, and every command is listed."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest
from onnx import TensorProto, helper

from profiles.strict import in_python
from remat_cli import errors
from remat_cli.main import COMMANDS
from remat_cli.runtime.c_session import BOUND_IN_CPP, CPP
from tests.remat_cli.strict_session import trace

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
OVERVIEW = (ROOT / "docs" / "reference" / "overview.md").read_text()
SESSIONS = (ROOT / "docs" / "how-to" / "sessions.md").read_text()
FROM_CPP = (ROOT / "docs" / "how-to" / "cpp.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINES = sorted({line for page in PAGES for line in re.findall(r"^\$ (remat .*)$", page.read_text(), flags=re.M)})
MOST_WORDS = 800


def command(name: str) -> click.Command:
    found: click.Command = import_module(f"remat_cli.commands.{name.replace('-', '_')}").command
    return found


def test_there_are_commands_to_check() -> None:
    assert len(LINES) >= 15


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_page_parses(line: str) -> None:
    _, name, *args = shlex.split(line.partition(" > ")[0], comments=True)
    command(name).make_context(name, args)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_listed(name: str) -> None:
    assert f"| `remat {name}" in OVERVIEW
    assert command(name).help


def test_exit_codes_are_listed() -> None:
    for kind in (errors.Usage, errors.BadInput, errors.Infeasible, errors.NoPlan, errors.Mismatch):
        assert f"| {kind.code} |" in OVERVIEW


def test_the_readme_is_short() -> None:
    text = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)
    assert len(re.findall(r"\b\w[\w'-]*\b", text)) < MOST_WORDS


def test_the_strict_session_is_spelled_as_it_is() -> None:
    assert in_python() in SESSIONS
    assert CPP.strip() in FROM_CPP
    assert BOUND_IN_CPP in FROM_CPP


def test_the_lines_for_python_run_the_file_as_it_stands(tmp_path: Path) -> None:
    """Ten equal ops, their sum, and its reader: others would merge them, or reorder them."""
    nodes = [helper.make_node("Exp", ["x"], [f"y{k}"], name=f"exp{k}") for k in range(10)]
    nodes.append(helper.make_node("Sum", [f"y{k}" for k in reversed(range(10))], ["total"], name="sum"))
    nodes.append(helper.make_node("Neg", ["total"], ["y"], name="last"))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xy")
    graph = helper.make_graph(nodes, "ten", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    kernels, _ = trace(model, tmp_path)
    assert [kernel.node for kernel in kernels] == [node.name for node in nodes]
    assert max(kernel.held for kernel in kernels) == 11 * 256  # every one of the ten, and the sum
    assert kernels[-1].held == 2 * 256  # all that was read is free
