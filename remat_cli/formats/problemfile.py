"""`*.problem.json`: a scheduling problem without its model, read and written; `*.chain.json` is read as one.

Invariant: what `read` returns can be scheduled, and `read(write(p)) == p`; whatever is wrong with a file is said with
the node or value and the field it is in. The fields are those of `Node` and `Problem`, under their own names but for
`phase`; those that have a default may be left out, and are where they have it. `rewritten` and `aside`
are Named's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import MISSING, fields
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
LARGEST_NUMBER = 2**60  # of any one number: sums of thousands stay within 64 bits, and typing errors show


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
    given = _entry(data, "the file", Problem, {"format", "values", "nodes"}, {"rewritten", "aside"})
    if given["format"] != FORMAT:
        raise Undeclared(f"its format is {given['format']!r}, not {FORMAT!r}")
    values = [
        _entry(entry, f"value {place}", None, {"name", "bytes"}) for place, entry in enumerate(_list(given, "values"))
    ]
    numbers = _number(values, "value")
    sizes = [_field(int, entry, "bytes", f"value {entry['name']!r}") for entry in values]
    nodes = [_entry(entry, f"node {place}", Node, {"name"}) for place, entry in enumerate(_list(given, "nodes"))]
    names = _number(nodes, "node")
    problem = Problem(
        nodes=tuple(Node(**_read(entry, Node, numbers, f"node {entry['name']!r}")) for entry in nodes),
        sizes=tuple(sizes),
        **_read(given, Problem, numbers, "the file"),
    )
    rewritten, aside = _field(bool, given, "rewritten", "the file", False), _field(int, given, "aside", "the file", 0)
    return Named(problem, tuple(names), tuple(numbers), rewritten, aside)


def _field(hint: Any, entry: Mapping[str, Any], name: str, what: str, usual: Any = None, **numbers: Any) -> Any:
    """The field of that type and name, `usual` where the entry leaves it out."""
    try:
        return declared(hint, entry.get(name, usual), name, least=0, most=LARGEST_NUMBER, **numbers)
    except Undeclared as error:
        raise Undeclared(f"{what}: {error}") from error


def _read(entry: Mapping[str, Any], kind: type, numbers: Mapping[str, int], what: str) -> dict[str, Any]:
    """The fields of `kind` that `entry` says; what it leaves out has its default."""
    found: dict[str, Any] = {}
    for name, hint in hints_of(kind).items():
        if name == "backward" and "phase" in entry:
            found[name] = _phase(entry["phase"], what)
        elif name in entry and name not in OWN:
            found[name] = _field(hint, entry, name, what, numbers=numbers)
    if "reads" in found:  # an op may read one value in two places
        found["reads"] = tuple(dict.fromkeys(found["reads"]))
    return found


def _phase(given: Any, what: str) -> bool:
    if given not in PHASES.values():
        raise Undeclared(f"{what}: phase is {given!r}, not one of {', '.join(PHASES.values())}")
    return bool(given == PHASES[True])


def _entry(
    entry: Any, what: str, kind: type | None, needed: Set[str], allowed: Set[str] = frozenset()
) -> dict[str, Any]:
    """An object that has the fields it needs and none that mean nothing."""
    if not isinstance(entry, dict):
        raise Undeclared(f"{what} is not an object")
    own = [field for field in fields(kind) if field.name not in OWN] if kind else []
    needed = needed | {field.name for field in own if field.default is MISSING}
    known = {"phase" if field.name == "backward" else field.name for field in own} | needed | allowed
    for field in sorted(needed - entry.keys()):
        raise Undeclared(f"{what} has no {field!r}")
    for field in sorted(entry.keys() - known):
        raise Undeclared(
            f"{what} has a field {field!r}, which means nothing here; the fields are {', '.join(sorted(known))}"
        )
    return entry


def _number(entries: Sequence[Mapping[str, Any]], what: str) -> dict[str, int]:
    """The numbers of named things; names are there, and differ."""
    found: dict[str, int] = {}
    for place, entry in enumerate(entries):
        name = entry["name"]
        if not isinstance(name, str) or not name:
            raise Undeclared(f"{what} {place} has no name")
        if name in found:
            raise Undeclared(f"there are two {what}s called {name!r}")
        found[name] = place
    return found


def _list(entry: Mapping[str, Any], field: str) -> list[Any]:
    found = entry[field]
    if not isinstance(found, list):
        raise Undeclared(f"the file: {field} is not a list")
    return found
