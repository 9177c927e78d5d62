"""YAML with the line of everything in it, as people write it: no anchors, no tags, no key twice, and not deep.

Invariant: what is read is what JSON could say, and each part of it has its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from profiles.plain_yaml import not_plain
from remat_cli.errors import BadInput

FILE_BYTES = 2**24  # bytes of a file
NESTING_LEVELS = 20
Place = tuple[str | int, ...]
PLAIN = ("null", "bool", "int", "float", "str")


@dataclass(frozen=True, slots=True)
class Tree:
    """`value` as JSON would have it; `lines`: of its parts, by the keys and numbers that lead to them."""

    path: Path
    value: Any
    lines: dict[Place, int]

    def refuse(self, place: Place, words: str) -> BadInput:
        """The error to raise for what stands there."""
        while place not in self.lines:
            place = place[:-1]
        return BadInput(f"{self.path}:{self.lines[place]}: {words}")


def read(path: Path) -> Tree:
    try:
        if not path.is_file():
            raise BadInput(f"{path}: there is no such file" if not path.exists() else f"{path}: not a regular file")
        if path.stat().st_size > FILE_BYTES:
            raise BadInput(f"{path} has {path.stat().st_size} bytes; a manifest may have {FILE_BYTES}")
        return parse(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not a manifest: it is not even text") from error


def parse(text: str, path: Path) -> Tree:
    try:
        if wrong := not_plain(text, NESTING_LEVELS, yaml.SafeLoader):
            raise BadInput(f"{path}:{wrong[0]}: {wrong[1]}")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadInput(f"{path}:{line}: not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if node is None:
        raise BadInput(f"{path}:1: it is empty")
    tree = Tree(path, None, {})
    return Tree(path, _value(node, (), tree), tree.lines)


def _value(node: yaml.Node, place: Place, tree: Tree) -> Any:
    tree.lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_value(part, (*place, number), tree) for number, part in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, part in node.value:
            name = _key(key, tree)
            if name in found:
                raise BadInput(f"{tree.path}:{key.start_mark.line + 1}: {name!r} stands here twice")
            found[name] = _value(part, (*place, name), tree)
            tree.lines[(*place, name)] = key.start_mark.line + 1
        return found
    return _scalar(node, tree)


def _key(node: yaml.Node, tree: Tree) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise BadInput(f"{tree.path}:{node.start_mark.line + 1}: a key is a word")
    return str(node.value)


def _scalar(node: yaml.Node, tree: Tree) -> Any:
    """Numbers and truth as YAML reads them; what else it would read into a word (a date) is that word."""
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind not in PLAIN:
        return str(node.value)
    try:
        return yaml.SafeLoader("").construct_document(node) if kind != "str" else str(node.value)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{tree.path}:{node.start_mark.line + 1}: {node.value!r} is no {kind}") from error
