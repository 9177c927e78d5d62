"""`*.problem.json`: a scheduling problem without its model, read and written; `*.chain.json` is read as one.

Invariant: what `read` returns can be scheduled, and `read(write(p)) == p`; whatever is wrong with a file is said with
the node or value and the field it is in. The fields are those of `Node` and `Problem`, under their own names but for
`phase`; those that have a default may be left out, and are where they have it. `rewritten` and `aside`
are Named's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from remat_cli.errors import BadInput
from remat_cli.formats import chainfile
from remat_cli.formats.declared import Undeclared, declared, hints_of
from remat_cli.formats.files import write_whole
from remat_cli.limits import TEXT_BYTES
from remat_cli.model.problem_of import Named
from remat_cli.reading import parse_json, read_whole, written_by_newer
from solvers.faults import faults
from solvers.problem import RESIDENT, Base, Node, Problem, Value

FORMAT = "remat-problem/1"
PHASES = {False: "forward", True: "backward"}  # `Node.backward`, which files call `phase`
OWN = ("nodes", "sizes")  # fields of `Problem` that are spelled with their names: `nodes` and `values`
NUMBERS: Any = {
    "least": 0,
    "most": 2**60,
}  # any one number: sums of thousands fit in 64 bits, and typing errors show


@dataclass(frozen=True, slots=True)
class _Value:
    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class _File:
    """What a file says besides the fields of its `Problem`."""

    format: str
    values: tuple[_Value, ...]
    nodes: tuple[dict[str, Any], ...]
    rewritten: bool = False
    aside: int = 0


def write(named: Named, path: Path) -> None:
    write_whole(path, dumps(named))


def dumps(named: Named) -> str:
    """One line for each value and node, so that files can be compared."""
    problem, names = named.problem, named.values
    values = [{"name": name, "bytes": size} for name, size in zip(names, problem.sizes, strict=True)]
    nodes = [
        {"name": name, **dict(_fields_of(node, names))} for node, name in zip(problem.nodes, named.nodes, strict=True)
    ]
    parts = [f'"format": {json.dumps(FORMAT)}, "resident": {problem.resident}']
    parts += [f'"values": {_lines(values)}', f'"nodes": {_lines(nodes)}']
    rest = {name: value for name, value in _fields_of(problem, names) if name != "resident"}
    if named.rewritten:
        rest["rewritten"] = True
    if named.aside:
        rest["aside"] = named.aside
    parts += [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in rest.items()]
    return "{" + ",\n ".join(parts) + "}\n"


def _lines(entries: Sequence[Mapping[str, Any]]) -> str:
    return "[\n  " + ",\n  ".join(json.dumps(entry) for entry in entries) + "\n ]" if entries else "[]"


def _fields_of(thing: Node | Problem, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The fields of a node or problem that are not as they would be by default."""
    kind: Any = type(thing)
    for field in fields(thing):
        value = getattr(thing, field.name)
        if field.name in OWN or value == field.default:
            continue
        if field.name == "backward":
            yield "phase", PHASES[value]
        else:
            yield field.name, spelled(hints_of(kind)[field.name], value, names)


def spelled(hint: Any, thing: Any, names: Sequence[str]) -> Any:
    """`thing`, of type `hint`, as JSON that is read back as the same; `names`: those of values."""
    if hint in (Value, Base):
        return None if thing == RESIDENT else names[thing]
    if hint in (int, bool):
        return thing
    if isinstance(hint, type) and issubclass(hint, Enum):
        return thing.value
    kind, args = get_origin(hint), get_args(hint)
    if kind not in (tuple, frozenset):
        raise NotImplementedError(f"problem files cannot say {hint}")
    alike = kind is frozenset or args[1:] == (...,)
    things = sorted(thing) if kind is frozenset else thing
    return [spelled(args[0 if alike else place], one, names) for place, one in enumerate(things)]


def read(path: Path) -> Named:
    """The problem in the file at `path`, checked."""
    return loads(read_whole(path, TEXT_BYTES), str(path))


def loads(content: bytes | str, where: str = "the problem") -> Named:
    try:
        data = parse_json(content, _no_duplicates)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where} is not JSON: {error.msg} in line {error.lineno}; the file may be truncated") from error
    except ValueError as error:
        raise BadInput(f"{where} is not a problem: {error}") from error
    try:
        named = chainfile.problem_of_chain(data) if chainfile.is_chain(data) else _problem(data)
    except Undeclared as error:
        raise BadInput(f"{where}: {error}") from error
    if wrong := next(faults(named.problem, named.nodes, named.values), None):
        raise BadInput(f"{where}: {wrong}")
    return named


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same field twice")
    return found


def _problem(data: Any) -> Named:
    if isinstance(data, dict) and str(data.get("format", "")).startswith("remat-plan/"):
        raise Undeclared("this is a plan already; give the model or problem it was made from")
    if isinstance(data, dict) and (newer := written_by_newer(data.get("format"), FORMAT)):
        raise Undeclared(newer)
    if isinstance(data, dict) and data.get("format", FORMAT) != FORMAT:
        raise Undeclared(f"its format is {data['format']!r}, not {FORMAT!r}")
    own, rest = _parted(data, _File)
    given: _File = _read(_File, own, "the file")
    values = _numbered([value.name for value in given.values], "value")
    nodes = _numbered([entry.get("name") for entry in given.nodes], "node")
    if "sizes" in rest:
        raise Undeclared("the file: 'sizes' means nothing here; the values have them")
    problem: Problem = _read(Problem, {**rest, "nodes": [], "sizes": []}, "the file", numbers=values)
    made = tuple(_node(entry, f"node {name!r}", values) for name, entry in zip(nodes, given.nodes, strict=True))
    problem = replace(problem, nodes=made, sizes=tuple(value.bytes for value in given.values))
    return Named(problem, tuple(nodes), tuple(values), given.rewritten, given.aside)


def _parted(data: Any, kind: Any) -> tuple[Any, dict[str, Any]]:
    """Of an object the fields of that kind, and the rest."""
    if not isinstance(data, dict):
        return data, {}
    own = {name: value for name, value in data.items() if name in hints_of(kind)}
    return own, {name: value for name, value in data.items() if name not in own}


def _node(entry: dict[str, Any], what: str, numbers: Mapping[str, int]) -> Node:
    if "backward" in entry:
        raise Undeclared(f'{what}: \'backward\' means nothing here; files say "phase": "{PHASES[True]}"')
    said = {"backward" if name == "phase" else name: value for name, value in entry.items() if name != "name"}
    if "phase" in entry:
        if entry["phase"] not in PHASES.values():
            raise Undeclared(f"{what}: phase is {entry['phase']!r}, not one of {', '.join(PHASES.values())}")
        said["backward"] = entry["phase"] == PHASES[True]
    node: Node = _read(Node, said, what, numbers=numbers)
    return replace(node, reads=tuple(dict.fromkeys(node.reads)))  # an op may read one value in two places


def _read(hint: Any, given: Any, what: str, **numbers: Any) -> Any:
    try:
        return declared(hint, given, closed=True, **NUMBERS, **numbers)
    except Undeclared as error:
        raise Undeclared(f"{what}: {error}") from error


def _numbered(names: Sequence[Any], what: str) -> dict[str, int]:
    """The numbers of named things; names are there, and differ."""
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise Undeclared(f"{what} {place} has no name")
    if len(found := {name: place for place, name in enumerate(names)}) < len(names):
        twice = next(name for place, name in enumerate(names) if found[name] != place)
        raise Undeclared(f"there are two {what}s called {twice!r}")
    return found
