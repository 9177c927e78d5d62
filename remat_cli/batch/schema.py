"""A JSON schema held against a tree: as much of the language as our own schemas speak, and the line of what is wrong.

Invariant: a schema that says more than is understood here is an error of ours, never passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

from remat_cli.batch.yamltree import Place

KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a word",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
SILENT = {"$schema", "$defs", "title", "description"}
SAID = {
    *("$ref", "anyOf", "type", "const", "enum", "required", "properties", "additionalProperties"),
    *("items", "minItems", "minimum", "pattern"),
}
Schema = dict[str, Any]
Fault = tuple[Place, str]


def schema_named(name: str) -> Schema:
    """One of ours: manifest or report."""
    found: Schema = json.loads(resources.files("remat_cli.batch").joinpath(f"{name}.schema.json").read_text())
    return found


def faults(value: Any, schema: Schema) -> Iterator[Fault]:
    """The faults of the value, each with its place."""
    yield from _faults(value, schema, schema, ())


def _faults(value: Any, schema: Schema, root: Schema, place: Place) -> Iterator[Fault]:
    assert set(schema) <= SAID | SILENT, f"the schema says {set(schema) - SAID - SILENT}"
    if "$ref" in schema:
        yield from _faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, place)
    if "anyOf" in schema:
        yield from _of_any(value, schema["anyOf"], root, place)
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, kind) for kind in kinds):
            yield place, f"{_show(value)} is not {' or '.join(KINDS[kind] for kind in kinds)}{_hint(schema)}"
            return
    if "const" in schema and value != schema["const"]:
        yield place, f"{_show(value)} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield place, f"{_show(value)} is not one of {', '.join(schema['enum'])}"
    if "minimum" in schema and _is(value, "number") and value < schema["minimum"]:
        yield place, f"{value} is less than {schema['minimum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield place, f"{value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        yield from _in_object(value, schema, root, place)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield place, "the list is empty"
        for number, part in enumerate(value):
            yield from _faults(part, schema.get("items", {}), root, (*place, number))


def _in_object(value: dict[str, Any], schema: Schema, root: Schema, place: Place) -> Iterator[Fault]:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield place, f"{name!r} is missing"
    for name, part in value.items():
        if name in known:
            yield from _faults(part, known[name], root, (*place, name))
        elif other is False:
            yield (*place, name), f"{name!r} means nothing here; there are {', '.join(known)}"
        elif isinstance(other, dict):
            yield from _faults(part, other, root, (*place, name))


def _of_any(value: Any, choices: list[Schema], root: Schema, place: Place) -> Iterator[Fault]:
    """The faults by the choice that fits the value's kind; otherwise a fault that lists all choices."""
    found = [list(_faults(value, choice, root, place)) for choice in choices]
    if any(not wrong for wrong in found):
        return
    inside = [wrong for wrong in found if all(len(at) > len(place) or "missing" in words for at, words in wrong)]
    if inside:
        yield from inside[0]
    else:
        yield place, "; and ".join(dict.fromkeys(words for wrong in found for _, words in wrong))


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return value is None


def _hint(schema: Schema) -> str:
    return f" ({schema['description']})" if "description" in schema else ""


def _show(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return repr(value)
