"""Plans in the names of their model: statements to and from what a plan file's "program" lists.

Invariant: `name_program` and `number_program` are inverse to each other, and neither judges a plan: `simulate` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remat_cli.errors import BadInput
from solvers.plan import Allocate, Compute, Deallocate, Plan, Statement

Json = dict[str, Any]
MOST_NUMBER = 1 << 60  # a register, or bytes


def name_program(plan: Plan, nodes: Sequence[str], values: Sequence[str]) -> tuple[Json, ...]:
    """The plan's statements as JSON objects; `nodes` and `values` are the names of the problem's numbers."""
    return tuple(_spell_fields(statement, nodes, values) for statement in plan.statements)


def _spell_fields(statement: Statement, nodes: Sequence[str], values: Sequence[str]) -> Json:
    match statement:
        case Allocate(value, register, size, shares):
            entry: Json = {"op": "allocate", "value": values[value], "register": register, "bytes": size}
            return entry if shares is None else {**entry, "shares": shares}
        case Compute(node, registers):
            return {"op": "compute", "node": nodes[node], "register": list(registers)}
        case Deallocate(register):
            return {"op": "deallocate", "register": register}


def number_program(program: Sequence[Json], nodes: Sequence[str], values: Sequence[str]) -> Plan:
    """The plan that a program lists; names that the model does not have are refused."""
    node_of = {name: index for index, name in enumerate(nodes)}
    value_of = {name: index for index, name in enumerate(values)}
    return Plan(tuple(_number_values(program, node_of, value_of)))


def _number_values(program: Sequence[Json], nodes: dict[str, int], values: dict[str, int]) -> Iterator[Statement]:
    for place, entry in enumerate(program):
        match entry:
            case {"op": "allocate", "value": name, "register": register, "bytes": size}:
                yield Allocate(_number_of(values, name, "value", place), register, size, entry.get("shares"))
            case {"op": "compute", "node": name, "register": registers}:
                yield Compute(_number_of(nodes, name, "node", place), tuple(registers))
            case _:
                yield Deallocate(entry["register"])


def _number_of(numbers: dict[str, int], name: str, kind: str, place: int) -> int:
    if name not in numbers:
        raise BadInput(f"program[{place}]: the model has no {kind} '{name}'; solve again for this model")
    return numbers[name]


def fault(entry: object) -> str | None:
    """The fault in the form of one statement, or None."""
    match entry:
        case {"op": "allocate", "value": str(), "register": register, "bytes": size, **rest}:
            if not _is_count(register) or not _is_count(size):
                return "an allocate has a register or size that is no whole number, or is negative"
            if not _is_count(rest.pop("shares", 0)):
                return "'shares' is not a register"
            return _beyond(rest)
        case {"op": "compute", "node": str(), "register": list(registers), **rest}:
            if all(register is None or _is_count(register) for register in registers):
                return _beyond(rest)
            return "a compute's 'register' holds something other than registers and null"
        case {"op": "deallocate", "register": register, **rest} if _is_count(register):
            return _beyond(rest)
        case {"op": str(op)}:
            return f"'{op}' is no complete allocate, compute or deallocate"
    return "not a statement: it needs an 'op'"


def _is_count(given: object) -> bool:
    return type(given) is int and 0 <= given <= MOST_NUMBER


def _beyond(rest: Mapping[Any, Any]) -> str | None:
    return f"{min(rest)!r} means nothing here" if rest else None
