"""Converts JSON to what type hints declare: records of dataclasses, members of enums, tuples, mappings, numbers between
limits, and what may be one of several.

Invariant: what comes out has the declared types through and through. An integer does for a float; true and false do for
no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

PLAIN: dict[Any, Any] = {Path: str, float: (int, float)}  # what JSON has for these


class Undeclared(ValueError):
    """The JSON is not what is declared; the message says where."""


@dataclass(frozen=True, slots=True)
class Between:
    """What a number may be, both ends included: `Annotated[int, Between(1)]`."""

    least: int
    most: int | None = None

    def check(self, given: int, where: str) -> None:
        if given < self.least:
            raise Undeclared(f"'{where}' is less than {self.least}")
        if self.most is not None and given > self.most:
            raise Undeclared(f"'{where}' is more than {self.most}")


def declared(hint: Any, given: Any, where: str = "", exact: bool = False, least: int | None = None) -> Any:
    """What `given` says, as a `hint`. `exact`: records have the declared fields, no more and no fewer. `least`: no
    number is less."""
    kind, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return given
    if kind is Annotated:
        found = declared(args[0], given, where, exact, least)
        args[1].check(found, where)
        return found
    if kind in (Union, UnionType):
        return _any_of(args, given, where, exact, least)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member(hint, given, where)
    if is_dataclass(hint):
        return _record(hint, given, where, exact, least)
    if kind is tuple:
        hints = [args[0]] * len(given) if isinstance(given, list) and args[1:] == (...,) else args
        if not isinstance(given, list) or len(hints) != len(given):
            raise Undeclared(f"'{where}' is not a list" + ("" if args[1:] == (...,) else f" of {len(args)}"))
        if set(args) <= {int, ...} and least is None and all(type(one) is int for one in given):
            return tuple(given)  # of which there may be many
        return tuple(
            declared(one, part, f"{where}[{place}]", exact, least)
            for place, (one, part) in enumerate(zip(hints, given, strict=True))
        )
    if kind in (dict, Mapping) and isinstance(given, dict):
        return {name: declared(args[1], part, f"{where}[{name!r}]", exact, least) for name, part in given.items()}
    if (isinstance(given, bool) and hint is not bool) or not isinstance(given, PLAIN.get(hint, kind or hint)):
        raise Undeclared(f"'{where}' is of the wrong type")
    if isinstance(given, float) and not isfinite(given):
        raise Undeclared(f"'{where}' is {given}")
    if least is not None and hint is int and given < least:
        raise Undeclared(f"'{where}' is less than {least}")
    return Path(given) if hint is Path else given


def _member(kind: type[Enum], given: Any, where: str) -> Enum:
    try:
        return kind(given)
    except ValueError as error:
        raise Undeclared(
            f"'{where}' is {given!r}, which is none of {', '.join(str(one.value) for one in kind)}"
        ) from error


def _any_of(hints: tuple[Any, ...], given: Any, where: str, exact: bool, least: int | None) -> Any:
    if given is None and NoneType in hints:
        return None
    wrong: list[Undeclared] = []
    for hint in (one for one in hints if one is not NoneType):
        try:
            return declared(hint, given, where, exact, least)
        except Undeclared as error:
            wrong.append(error)
    raise wrong[-1]


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _record(kind: Any, given: Any, where: str, exact: bool, least: int | None) -> Any:
    if not isinstance(given, dict):
        raise Undeclared(f"'{where}' is not an object" if where else "it is not an object")
    inside, known = f"{where}." if where else "", fields(kind)
    for field in known:
        optional = not exact and (field.default is not MISSING or field.default_factory is not MISSING)
        if field.name not in given and not optional:
            raise Undeclared(f"'{inside}{field.name}' is missing")
    if exact and (more := sorted(given.keys() - {field.name for field in known})):
        raise Undeclared(f"'{inside}{more[0]}' means nothing here")
    hints = _hints(kind)
    said = [field.name for field in known if field.name in given]
    return kind(**{name: declared(hints[name], given[name], f"{inside}{name}", exact, least) for name in said})
