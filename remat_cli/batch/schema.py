"""YAML as people write it, held against our JSON schemas: what is wrong, each with its line and in words of ours.

Invariant: no anchors, no tags, no key twice, and not deep: what is read is what JSON could say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from profiles.plain_yaml import not_plain
from remat_cli.errors import BadInput
from remat_cli.reading import read_whole

if TYPE_CHECKING:
    from jsonschema import ValidationError


FILE_BYTES = 2**24  # bytes of a file
NESTING_LEVELS = 20
Place = tuple[str | int, ...]
PLAIN = ("null", "bool", "int", "float", "str")
KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a word",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
Schema = dict[str, Any]
Fault = tuple[Place, str]


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
        return parse(read_whole(path, FILE_BYTES).decode(), path)
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


def schema_named(name: str) -> Schema:
    """One of ours: manifest or report."""
    found: Schema = json.loads(resources.files("remat_cli.batch").joinpath(f"{name}.schema.json").read_text())
    return found


def faults(value: Any, schema: Schema) -> Iterator[Fault]:
    """The faults of the value, each with its place."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def whole(_: object, given: object) -> bool:
        """1.0 is no whole number: nothing that counts takes it."""
        return type(given) is int

    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", whole)
    for error in extend(Draft202012Validator, type_checker=checker)(schema).iter_errors(value):
        yield from _faults(error)


def _faults(error: ValidationError) -> Iterator[Fault]:
    place = tuple(error.absolute_path)
    given: Any = error.instance
    said: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "anyOf":
            yield from _of_any(error, place)
        case "additionalProperties":
            known = schema.get("properties", {})
            for name in (name for name in given if name not in known):
                yield (*place, name), f"{name!r} means nothing here; there are {', '.join(known)}"
        case "required":
            yield place, error.message.replace("is a required property", "is missing")
        case "type":
            kinds = [said] if isinstance(said, str) else said
            hint = schema.get("description")
            words = f"{_show(given)} is not {' or '.join(KINDS[kind] for kind in kinds)}"
            yield place, f"{words} ({hint})" if hint else words
        case "const":
            yield place, f"{_show(given)} is not {said!r}"
        case "enum":
            yield place, f"{_show(given)} is not one of {', '.join(said)}"
        case "minimum":
            yield place, f"{given} is less than {said}"
        case "maximum":
            yield place, f"{given} is more than {said}"
        case "minItems":
            yield place, "the list is empty"
        case _:
            yield place, error.message


def _of_any(error: ValidationError, place: Place) -> Iterator[Fault]:
    """The faults by the choice that fits the value's kind; otherwise a fault that lists all choices."""
    choices: dict[Any, list[Fault]] = {}
    for one in error.context:
        choices.setdefault(one.schema_path[0], []).extend(_faults(one))
    found = list(choices.values())
    inside = [wrong for wrong in found if all(len(at) > len(place) or "missing" in words for at, words in wrong)]
    if inside:
        yield from inside[0]
    else:
        yield place, "; and ".join(dict.fromkeys(words for wrong in found for _, words in wrong))


def _show(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return repr(value)
