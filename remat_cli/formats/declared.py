"""Converts JSON to what type hints declare: records of dataclasses, members of enums, tuples, mappings, numbers between
limits, values of a problem by their names, and what may be one of several.

Invariant: what comes out has the declared types through and through. An integer does for a float; true and false do for
no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from remat_cli.arguments import brief
from solvers.problem import RESIDENT, Base

PLAIN: dict[Any, Any] = {Path: str, float: (int, float)}  # what JSON has for these


class Undeclared(ValueError):
    """The JSON is not what is declared; the message says where."""


@dataclass(frozen=True, slots=True)
class Between:
    """What a number may be, both ends included: `Annotated[int, Between(1)]`."""

    least: int
    most: int | None = None

    def check(self, given: float, where: str) -> None:
        if given < self.least:
            raise Undeclared(f"'{where}' is {brief(given)}, which is less than {self.least}")
        if self.most is not None and given > self.most:
            raise Undeclared(f"'{where}' is {brief(given)}, which is more than {self.most}")


@dataclass(frozen=True, slots=True)
class _How:
    """`closed`: records have no more than the declared fields, `exact`: nor fewer. `least`, `most`: of any number.
    `numbers`: those of the values that the file calls by name, where hints say that values are meant."""

    closed: bool = False
    exact: bool = False
    least: int | None = None
    most: int | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)


def declared(hint: Any, given: Any, where: str = "", **how: Any) -> Any:
    """What `given` says, as a `hint`; `how`: the fields of `_How`."""
    return _read(hint, given, where, _How(**how))


def _read(hint: Any, given: Any, where: str, how: _How) -> Any:
    kind, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return given
    if kind is Annotated and isinstance(args[1], Between):
        found = _read(args[0], given, where, how)
        args[1].check(found, where)
        return found
    if kind is Annotated:
        return _named(given, where, how, or_resident=hint == Base)
    if kind in (Union, UnionType):
        return _any_of(args, given, where, how)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _member(hint, given, where)
    if is_dataclass(hint):
        return _record(hint, given, where, how)
    if kind in (tuple, frozenset):
        return kind(_listed(kind, args, given, where, how))
    if kind in (dict, Mapping) and isinstance(given, dict):
        return {name: _read(args[1], part, f"{where}[{name!r}]", how) for name, part in given.items()}
    if (isinstance(given, bool) and hint is not bool) or not isinstance(given, PLAIN.get(hint, kind or hint)):
        raise Undeclared(f"'{where}' is of the wrong type: {brief(given)}")
    if isinstance(given, float) and not isfinite(given):
        raise Undeclared(f"'{where}' is {given}")
    if hint in (int, float) and how.least is not None:
        Between(how.least, how.most).check(given, where)
    return Path(given) if hint is Path else given


def _listed(kind: type, args: tuple[Any, ...], given: Any, where: str, how: _How) -> Iterable[Any]:
    alike = kind is frozenset or args[1:] == (...,)
    hints = [args[0]] * len(given) if alike and isinstance(given, list) else args
    if not isinstance(given, list) or len(hints) != len(given):
        raise Undeclared(f"'{where}' is not a list" + ("" if alike else f" of {len(args)} things"))
    if set(args) <= {int, ...} and how.least is None and all(type(one) is int for one in given):
        return given  # of which there may be many
    return [_read(one, part, f"{where}[{place}]", how) for place, (one, part) in enumerate(zip(hints, given))]


def _named(given: Any, where: str, how: _How, or_resident: bool) -> int:
    if given is None and or_resident:
        return RESIDENT
    if not isinstance(given, str) or given not in how.numbers:
        raise Undeclared(f"'{where}' names {brief(given)}, which is not among the values")
    return how.numbers[given]


def _member(kind: type[Enum], given: Any, where: str) -> Enum:
    try:
        return kind(given)
    except ValueError as error:
        raise Undeclared(
            f"'{where}' is {given!r}, which is none of {', '.join(str(one.value) for one in kind)}"
        ) from error


def _any_of(hints: tuple[Any, ...], given: Any, where: str, how: _How) -> Any:
    if given is None and NoneType in hints:
        return None
    wrong: list[Undeclared] = []
    for hint in (one for one in hints if one is not NoneType):
        try:
            return _read(hint, given, where, how)
        except Undeclared as error:
            wrong.append(error)
    raise wrong[-1]


@cache
def hints_of(kind: Any) -> dict[str, Any]:
    """The types of a record's fields, with what they are annotated with."""
    return get_type_hints(kind, include_extras=True)


def _record(kind: Any, given: Any, where: str, how: _How) -> Any:
    if not isinstance(given, dict):
        raise Undeclared(f"'{where}' is not an object" if where else "it is not an object")
    inside, known = f"{where}." if where else "", fields(kind)
    for one in known:
        optional = not how.exact and (one.default is not MISSING or one.default_factory is not MISSING)
        if one.name not in given and not optional:
            raise Undeclared(f"'{inside}{one.name}' is missing")
    if (how.closed or how.exact) and (more := sorted(given.keys() - {one.name for one in known})):
        raise Undeclared(f"'{inside}{more[0]}' means nothing here")
    hints = hints_of(kind)
    said = [one.name for one in known if one.name in given]
    return kind(**{name: _read(hints[name], given[name], f"{inside}{name}", how) for name in said})
