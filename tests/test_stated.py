"""What ARCHITECTURE and docstrings state of the code, where no type and no contract of imports holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("remat_cli", "profiles", "solvers")
SOLVE = ("planning", "actions/solving.py", "actions/piecing.py", "actions/piece_choice.py")
NAME_STOCK_SESSIONS = {  # outside of what makes, asks for or measures them, nothing does
    "remat_cli/actions/emitting.py",
    "remat_cli/actions/profiling.py",
    "remat_cli/actions/questions.py",
    "remat_cli/actions/shrinking/plans.py",
    "remat_cli/checking/child.py",
    "remat_cli/checking/trying.py",
    "remat_cli/planning/stock/target.py",
}
MAKE_OPTIONS = {
    "profiles/cuda.py",
    "profiles/strict.py",
    "remat_cli/checking/weight.py",
    "remat_cli/runtime/c_session.py",
    "remat_cli/runtime/optimized.py",
    "remat_cli/runtime/session.py",
}


def modules(*places: str) -> Iterator[tuple[str, ast.Module]]:
    for place in places:
        path = ROOT / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text())


def test_few_name_stock_sessions() -> None:
    found = {
        name
        for name, tree in modules("remat_cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "remat_cli.model.sessions"
        if {"DEFAULT", "STOCK"}.intersection(one.name for one in node.names)
    }
    assert found == NAME_STOCK_SESSIONS


def test_options_of_sessions_are_made_in_few_places() -> None:
    found = {
        name
        for name, tree in modules("remat_cli", "profiles")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "SessionOptions"
    }
    assert found == MAKE_OPTIONS


def test_the_time_of_a_solve_is_divided_in_one_place() -> None:
    for name, tree in modules(*(f"remat_cli/{place}" for place in SOLVE)):
        if name == "remat_cli/planning/time_plan.py":
            continue
        lines = (ROOT / name).read_text().splitlines()
        for node in tree.body:
            if isinstance(node, ast.Assign):
                names = [one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)]
                seconds = any(one.endswith("_SECONDS") for one in names)
                share = any(one.endswith("_SHARE") for one in names) and "of the time" in lines[node.lineno - 1]
                assert not seconds, f"{name}: {names}"
                assert not share, f"{name}: {names}"


def test_nothing_is_pickled() -> None:
    for name, tree in modules(*PACKAGES):
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), name
                assert node.value.value is False, name
            if isinstance(node, ast.Import | ast.ImportFrom):
                every = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                assert "pickle" not in every, name
