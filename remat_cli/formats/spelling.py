"""Converts fields of the vocabulary to and from JSON by their declared types; values become their names.

Invariant: `parse_value(hint, spell_value(hint, thing, names), numbers, ...) == thing` for every type that the
vocabulary uses. A type that is not known here is an error, never a field that is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, get_args, get_origin

from solvers.problem import RESIDENT, Base, Value

LARGEST_NUMBER = (
    2**60
)  # of any one number: sums of thousands stay within 64 bits times a little, and typing errors show


class Misspelt(ValueError):
    """The JSON does not have the field's type."""


def spell_value(hint: Any, thing: Any, names: Sequence[str]) -> Any:
    """`thing`, of type `hint`, as JSON; `names`: the names of values."""
    if hint in (Value, Base):
        return None if thing == RESIDENT else names[thing]
    if hint in (int, bool):
        return thing
    if isinstance(hint, type) and issubclass(hint, Enum):
        return thing.value
    things = sorted(thing) if _collection(hint) is frozenset else thing
    return [spell_value(inner, entry, names) for inner, entry in zip(_inner(hint, len(thing)), things, strict=True)]


def parse_value(hint: Any, given: Any, numbers: Mapping[str, int], what: str) -> Any:
    """The field of type `hint` that the JSON `given` spells; the message of Misspelt begins with `what`."""
    if hint in (Value, Base):
        return _value(given, numbers, what, or_resident=hint == Base)
    if hint is int:
        return _integer(given, what)
    if hint is bool:
        if not isinstance(given, bool):
            raise Misspelt(f"{what} is {given!r}, not true or false")
        return given
    if isinstance(hint, type) and issubclass(hint, Enum):
        known = [kind.value for kind in hint]
        if given not in known:
            raise Misspelt(f"{what} is {given!r}, not one of {', '.join(known)}")
        return hint(given)
    _collection(hint)
    if not isinstance(given, list):
        raise Misspelt(f"{what} is not a list")
    inner = _inner(hint, len(given))
    if len(inner) != len(given):
        raise Misspelt(f"{what} holds {given!r}, which is not {len(inner)} things in a list")
    return _collection(hint)(parse_value(one, entry, numbers, what) for one, entry in zip(inner, given, strict=True))


def _collection(hint: Any) -> type[tuple[Any, ...]] | type[frozenset[Any]]:
    if get_origin(hint) is tuple:
        return tuple
    if get_origin(hint) is frozenset:
        return frozenset
    raise NotImplementedError(f"problem files cannot say {hint}")


def _inner(hint: Any, count: int) -> list[Any]:
    """The types of the elements of a collection: one for all of them, or one for each."""
    args = get_args(hint)
    alike = _collection(hint) is frozenset or args[1:] == (Ellipsis,)
    return [args[0]] * count if alike else list(args)


def _value(given: Any, numbers: Mapping[str, int], what: str, or_resident: bool) -> int:
    if given is None and or_resident:
        return RESIDENT
    if not isinstance(given, str) or given not in numbers:
        raise Misspelt(f"{what} names {given!r}, which is not among the values")
    return numbers[given]


def _integer(given: Any, what: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise Misspelt(f"{what} is {given!r}, not an integer")
    if not 0 <= given <= LARGEST_NUMBER:
        raise Misspelt(f"{what} is {given}; it must be between 0 and {LARGEST_NUMBER}")
    return given
