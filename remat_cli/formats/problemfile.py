"""`*.problem.json`: a scheduling problem without its model, read and written.

Invariant: what `read` returns can be scheduled, and `read(write(p)) == p`; whatever is wrong with a file is said with
the node or value and the field it is in. Fields beyond the format of the contract are `views`, `overwrites` and `kind`
of nodes, and `optional` and `unread_stay` of the whole; all may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.formats.files import write_whole
from remat_cli.model.problem_of import Named
from solvers.problem import RESIDENT, Kind, Node, Problem

FORMAT = "remat-problem/1"
LARGEST = 2**60  # of any one number: sums of thousands stay within 64 bits times a little, and typing errors show
FIELDS = {"format", "resident", "values", "nodes", "outputs", "optional", "unread_stay"}
NODE_FIELDS = {"name", "cost", "reads", "writes", "workspace", "once", "phase", "views", "overwrites", "kind"}


def write(named: Named, path: Path) -> None:
    write_whole(path, dumps(named))


def dumps(named: Named) -> str:
    """One line for each value and node, so that files can be compared."""
    problem = named.problem
    names = named.values
    values = [{"name": name, "bytes": size} for name, size in zip(names, problem.sizes, strict=True)]
    nodes = [_node_fields(node, name, names) for node, name in zip(problem.nodes, named.nodes, strict=True)]
    parts = [
        f'"format": {json.dumps(FORMAT)}, "resident": {problem.resident}',
        f'"values": {_lines(values)}',
        f'"nodes": {_lines(nodes)}',
        f'"outputs": {json.dumps([names[value] for value in problem.outputs])}',
    ]
    if problem.optional:
        parts.append(f'"optional": {json.dumps([names[value] for value in sorted(problem.optional)])}')
    if problem.unread_stay:
        parts.append('"unread_stay": true')
    return "{" + ",\n ".join(parts) + "}\n"


def _lines(entries: Sequence[Mapping[str, Any]]) -> str:
    return "[\n  " + ",\n  ".join(json.dumps(entry) for entry in entries) + "\n ]" if entries else "[]"


def _node_fields(node: Node, name: str, names: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": name,
        "cost": node.cost,
        "reads": [names[value] for value in node.reads],
        "writes": [names[value] for value in node.writes],
    }
    if node.workspace:
        fields["workspace"] = node.workspace
    if node.once:
        fields["once"] = True
    if node.backward:
        fields["phase"] = "backward"
    if node.views:
        fields["views"] = [[names[write], None if read == RESIDENT else names[read]] for write, read in node.views]
    if node.overwrites:
        fields["overwrites"] = [[names[write], names[read]] for write, read in node.overwrites]
    if node.kind is not Kind.OPAQUE:
        fields["kind"] = node.kind.value
    return fields


def read(path: Path) -> Named:
    """The problem in the file at `path`, checked."""
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not JSON: it is not even text") from error
    return loads(content, str(path))


def loads(content: str, where: str = "the problem") -> Named:
    try:
        data = json.loads(content, object_pairs_hook=_no_duplicates)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where} is not JSON: {error.msg} in line {error.lineno}; the file may be truncated") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not a problem: {error}") from error
    return _Reader(where).problem(data)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object has the same field twice")
    return fields


class _Reader:
    """Checks each field where it is read; `where` begins every message."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.number: dict[str, int] = {}

    def problem(self, data: Any) -> Named:
        if isinstance(data, dict) and str(data.get("format", "")).startswith("remat-plan/"):
            raise self._bad("this is a plan already; give the model or problem it was made from")
        self._check_fields(data, "the file", FIELDS, {"format", "values", "nodes", "outputs"})
        if data["format"] != FORMAT:
            raise self._bad(f"its format is {data['format']!r}, not {FORMAT!r}")
        sizes = [self._value(entry, place) for place, entry in enumerate(self._list(data, "values", "the file"))]
        nodes: list[Node] = []
        names: dict[str, None] = {}
        written: dict[int, str] = {}
        for place, entry in enumerate(self._list(data, "nodes", "the file")):
            name = self._name(entry, f"node {place}", names)
            nodes.append(self._node(entry, f"node {name!r}", written))
        problem = Problem(
            nodes=tuple(nodes),
            sizes=tuple(sizes),
            outputs=self._values(data, "outputs", "the file"),
            resident=self._integer(data, "resident", "the file"),
            optional=frozenset(self._values(data, "optional", "the file")),
            unread_stay=self._flag(data, "unread_stay", "the file"),
        )
        for value in (*problem.outputs, *sorted(problem.optional)):
            if value not in written:
                raise self._bad(f"{self._called(value)!r} is an output or optional, but no node writes it")
        return Named(problem, tuple(names), tuple(self.number))

    def _value(self, entry: Any, place: int) -> int:
        self._check_fields(entry, f"value {place}", {"name", "bytes"}, {"name", "bytes"})
        name = entry["name"]
        if not isinstance(name, str) or not name:
            raise self._bad(f"value {place} has no name")
        if name in self.number:
            raise self._bad(f"there are two values called {name!r}")
        self.number[name] = place
        return self._integer(entry, "bytes", f"value {name!r}")

    def _name(self, entry: Any, what: str, names: dict[str, None]) -> str:
        self._check_fields(entry, what, NODE_FIELDS, {"name", "cost", "reads", "writes"})
        name = entry["name"]
        if not isinstance(name, str) or not name:
            raise self._bad(f"{what} has no name")
        if name in names:
            raise self._bad(f"there are two nodes called {name!r}")
        names[name] = None
        return name

    def _node(self, entry: dict[str, Any], what: str, written: dict[int, str]) -> Node:
        reads, writes = self._values(entry, "reads", what), self._values(entry, "writes", what)
        for value in reads:
            if value not in written:
                raise self._bad(
                    f"{what} reads {self._called(value)!r} before any node writes it; put it after its writer"
                )
        for value in writes:
            if value in written:
                raise self._bad(f"{what} writes {self._called(value)!r}, which {written[value]} writes too")
        written.update(dict.fromkeys(writes, what))
        return Node(
            cost=self._integer(entry, "cost", what),
            reads=reads,
            writes=writes,
            workspace=self._integer(entry, "workspace", what),
            once=self._flag(entry, "once", what),
            views=self._pairs(entry, "views", what, reads, writes),
            overwrites=self._pairs(entry, "overwrites", what, reads, writes),
            backward=self._choice(entry, "phase", what, "forward", ("forward", "backward")) == "backward",
            kind=Kind(self._choice(entry, "kind", what, Kind.OPAQUE.value, tuple(kind.value for kind in Kind))),
        )

    def _pairs(
        self, entry: dict[str, Any], field: str, what: str, reads: Sequence[int], writes: Sequence[int]
    ) -> tuple[tuple[int, int], ...]:
        """[write, read] pairs; the read of a view may be null: an input or weight."""
        found = []
        for pair in self._list(entry, field, what):
            if not isinstance(pair, list) or len(pair) != 2:
                raise self._bad(f"{what}: {field} holds {pair!r}, which is not a pair of a write and a read")
            write = self._index(pair[0], f"{what}: {field}")
            resident = pair[1] is None and field == "views"
            read = RESIDENT if resident else self._index(pair[1], f"{what}: {field}")
            if write not in writes or (read != RESIDENT and read not in reads):
                raise self._bad(f"{what}: {field} holds {pair!r}, which the node does not write and read")
            found.append((write, read))
        return tuple(found)

    def _values(self, entry: dict[str, Any], field: str, what: str) -> tuple[int, ...]:
        found = tuple(self._index(name, f"{what}: {field}") for name in self._list(entry, field, what))
        if field == "reads":  # an op may read one value in two places
            return tuple(dict.fromkeys(found))
        if len(set(found)) < len(found):
            raise self._bad(f"{what}: {field} names a value twice")
        return found

    def _index(self, name: Any, what: str) -> int:
        if not isinstance(name, str) or name not in self.number:
            raise self._bad(f"{what} names {name!r}, which is not among the values")
        return self.number[name]

    def _called(self, value: int) -> str:
        return next(name for name, index in self.number.items() if index == value)

    def _check_fields(self, entry: Any, what: str, known: set[str], needed: set[str]) -> None:
        if not isinstance(entry, dict):
            raise self._bad(f"{what} is not an object")
        for field in sorted(needed - entry.keys()):
            raise self._bad(f"{what} has no {field!r}")
        for field in sorted(entry.keys() - known):
            raise self._bad(
                f"{what} has a field {field!r}, which means nothing here; the fields are {', '.join(sorted(known))}"
            )

    def _list(self, entry: dict[str, Any], field: str, what: str) -> list[Any]:
        found = entry.get(field, [])
        if not isinstance(found, list):
            raise self._bad(f"{what}: {field} is not a list")
        return found

    def _integer(self, entry: dict[str, Any], field: str, what: str) -> int:
        found = entry.get(field, 0)
        if not isinstance(found, int) or isinstance(found, bool):
            raise self._bad(f"{what}: {field} is {found!r}, not an integer")
        if not 0 <= found <= LARGEST:
            raise self._bad(f"{what}: {field} is {found}; it must be between 0 and {LARGEST}")
        return found

    def _flag(self, entry: dict[str, Any], field: str, what: str) -> bool:
        found = entry.get(field, False)
        if not isinstance(found, bool):
            raise self._bad(f"{what}: {field} is {found!r}, not true or false")
        return found

    def _choice(self, entry: dict[str, Any], field: str, what: str, default: str, known: Sequence[str]) -> str:
        found = entry.get(field, default)
        if found not in known:
            raise self._bad(f"{what}: {field} is {found!r}, not one of {', '.join(known)}")
        return str(found)

    def _bad(self, what: str) -> BadInput:
        return BadInput(f"{self.where}: {what}")
