"""What a method can be told beyond the question itself: a frozen record beside the method, whose fields say all of it.

Invariant: an option's type, default, limits, flag and help stand in its field and nowhere else; `built` makes no record
that they do not allow. Importing this, or a record, imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

Orders = tuple[tuple[int, ...], ...]  # schedules known beforehand, in the numbers of the problem that is solved


@dataclass(frozen=True, slots=True)
class Option:
    """A field of such a record, as those who read it need it. `kind`: bool, int, str (with `choices`) or Orders."""

    name: str
    help: str
    kind: Any
    default: Any
    choices: tuple[str, ...] = ()
    least: int = 1  # of an int that is given

    @property
    def flag(self) -> str:
        return "--from" if self.kind == Orders else f"--{self.name.replace('_', '-')}"

    def refusal(self, given: object) -> str | None:
        """Why this cannot be its value, if so."""
        if self.choices:
            return None if given in self.choices else f"{given!r} is not one of {', '.join(self.choices)}"
        if self.kind == Orders:
            return None
        if type(given) is not self.kind:
            return f"{given!r} is not of type {self.kind.__name__}"
        if self.kind is int and isinstance(given, int) and given < self.least:
            return f"{given} is less than {self.least}"
        return None


@dataclass(frozen=True, slots=True)
class NoOptions:
    """For methods that can be told nothing."""


def option(default: Any, says: str) -> Any:
    """A field of a method's options."""
    return field(default=default, metadata={"help": says})


def options_of(record: type) -> tuple[Option, ...]:
    hints = get_type_hints(record)
    return tuple(_option(own.name, hints[own.name], own.default, own.metadata["help"]) for own in fields(record))


def _option(name: str, hint: Any, default: Any, says: str) -> Option:
    if get_origin(hint) is Literal:
        return Option(name, says, str, default, choices=get_args(hint))
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
    return Option(name, says, kinds[0], default)


def built(record: type, given: Mapping[str, Any]) -> Any:
    """The record with these options; ValueError says which of them it does not have or allow."""
    known = {entry.name: entry for entry in options_of(record)}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"there is no option '{name}'; there are: {', '.join(known) or 'none'}")
        if (refused := known[name].refusal(value)) is not None:
            raise ValueError(f"{name}: {refused}")
    return record(**given)
