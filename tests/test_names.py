"""A public class has a name of its own: a reader who meets it need not ask which of two modules it comes from."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("solvers", "profiles", "remat_cli")

# Names that two or more modules still share. Whoever renames one strikes it off; no name is ever added.
SHARED = {
    "Call",
    "Curve",
    "Emitted",
    "Found",
    "Measured",
    "Names",
    "Planned",
    "Point",
    "Raced",
    "Report",
    "Step",
    "Table",
    "Watch",
    "Written",
}


def public_classes(source: str) -> list[str]:
    """The classes that stand at the top of a module and begin with no underscore."""
    found = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return [node.name for node in found if not node.name.startswith("_")]


def shared_names(sources: dict[str, str]) -> dict[str, list[str]]:
    """For each name that several modules give to a public class, these modules."""
    modules: dict[str, list[str]] = defaultdict(list)
    for module, source in sources.items():
        for name in public_classes(source):
            modules[name].append(module)
    return {name: found for name, found in modules.items() if len(found) > 1}


def all_sources() -> dict[str, str]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def test_no_two_modules_give_a_class_one_name() -> None:
    new = {name: modules for name, modules in shared_names(all_sources()).items() if name not in SHARED}
    assert new == {}


def test_the_list_of_shared_names_only_shrinks() -> None:
    assert SHARED - shared_names(all_sources()).keys() == set(), "strike these off the list: they are shared no more"


def test_a_shared_name_is_found() -> None:
    sources = {
        "a.py": "class Op: ...",
        "b.py": "class Op: ...\nclass _Own: ...",
        "c.py": "class _Own: ...\nclass D: ...",
    }
    assert shared_names(sources) == {"Op": ["a.py", "b.py"]}
