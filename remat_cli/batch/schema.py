"""Trees held against our JSON schemas: what is wrong, each with its place and in words of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

from remat_cli.batch.yamltree import Place

if TYPE_CHECKING:
    from jsonschema import ValidationError

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


def schema_named(name: str) -> Schema:
    """One of ours: manifest or report."""
    found: Schema = json.loads(resources.files("remat_cli.batch").joinpath(f"{name}.schema.json").read_text())
    return found


def faults(value: Any, schema: Schema) -> Iterator[Fault]:
    """The faults of the value, each with its place."""
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(schema).iter_errors(value):
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
