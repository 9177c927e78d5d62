"""A public class has a name of its own: a reader who meets it need not ask which of two modules it comes from."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("solvers", "profiles", "remat_cli")


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
    assert shared_names(all_sources()) == {}


def test_a_shared_name_is_found() -> None:
    sources = {
        "a.py": "class Op: ...",
        "b.py": "class Op: ...\nclass _Own: ...",
        "c.py": "class _Own: ...\nclass D: ...",
    }
    assert shared_names(sources) == {"Op": ["a.py", "b.py"]}


def test_nothing_that_gates_is_random() -> None:
    """What draws cases reads FRESH_SEED, which a campaign alone draws anew."""
    drawn = ("SystemRandom" + "(", "os." + "urandom", "secrets" + ".")
    here = Path(__file__)
    files = [path for path in here.parent.rglob("*.py") if path != here]
    assert not [str(path) for path in files if any(word in path.read_text() for word in drawn)]
