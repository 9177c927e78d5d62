"""`*.cert.json`: the proof of a plan's bounds, or that there is no plan. See `docs/reference/certificates.md`.

Invariant: a file that is read back has the right form and is as it was written, to the last field, by a seal that
anyone can make. `solvers.proof.check` says whether it proves anything. Numbers are integers; nodes and values have the
numbers of the problem that is named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from remat_cli.errors import BadInput
from remat_cli.formats import problemfile
from remat_cli.formats.files import write_whole
from remat_cli.limits import TEXT_BYTES
from remat_cli.model.problem_of import Named
from remat_cli.reading import parse_json, read_whole, written_by_newer
from solvers.proof.certificate import Cases, Certificate, CostProof, PeakProof, Sum

FORMAT = "remat-certificate/1"
_COST = ("budget", "bound", "order", "pivots", "rows", "steps")
_SUM = ("rows", "weights", "shift", "costs")
_CASES = ("number", "zero", "one")


class Malformed(ValueError):
    """The text does not have the right form; the message says where."""


def digest(named: Named) -> str:
    """The name of a problem: the SHA-256 of its text."""
    return _sha256(problemfile.dumps(named))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(certificate: Certificate, path: Path) -> None:
    write_whole(path, dumps(certificate))


def dumps(certificate: Certificate) -> str:
    """The text of the file, with one step of a proof a line."""
    head = [f'"format": {json.dumps(FORMAT)}', f'"seal": {json.dumps(seal(certificate))}']
    return "{" + ",\n ".join([*head, _content_of(certificate)]) + "}\n"


def seal(certificate: Certificate) -> str:
    """The seal: it reveals accidents and careless edits; the check reveals false claims."""
    return _sha256(_content_of(certificate))


def _content_of(certificate: Certificate) -> str:
    peak = certificate.peak
    proofs = ",\n".join(map(_cost, certificate.costs))
    parts = [f'"problem": {json.dumps(certificate.problem)}']
    parts.append(f'"peak": {json.dumps(peak and {"bound": peak.bound, "node": peak.node})}')
    return ",\n ".join([*parts, f'"costs": [\n{proofs}\n ]'])


def _cost(proof: CostProof) -> str:
    parts = [f'"{name}": {json.dumps(getattr(proof, name))}' for name in _COST[:4]]
    parts.append(f'"rows": {_lines(list(map(json.dumps, proof.rows)))}')
    parts.append(f'"steps": {_lines([json.dumps(_step(step)) for step in proof.steps])}')
    return "  {" + ",\n   ".join(parts) + "}"


def _lines(entries: list[str]) -> str:
    return "[\n    " + ",\n    ".join(entries) + "\n   ]" if entries else "[]"


def _step(step: Sum | Cases) -> dict[str, Any]:
    return {name: getattr(step, name) for name in (_SUM if isinstance(step, Sum) else _CASES)}


def read(path: Path) -> Certificate:
    try:
        data = parse_json(read_whole(path, TEXT_BYTES))
    except ValueError as error:
        raise BadInput(f"{path} is not a certificate, or truncated: {error}") from error
    if isinstance(data, dict) and (newer := written_by_newer(data.get("format"), FORMAT)):
        raise BadInput(f"{path}: {newer}")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadInput(f"{path} is not a certificate of format {FORMAT}; 'remat solve --certificate' writes them")
    try:
        return _certificate(data)
    except Malformed as error:
        raise BadInput(f"{path}: {error}") from error


def _certificate(data: Any) -> Certificate:
    seal_given = data.pop("seal", None)
    found = parse_certificate(data)
    if seal_given != seal(found):
        raise Malformed("its seal is broken: it is no longer what 'remat solve' wrote")
    return found


def parse_certificate(data: Any) -> Certificate:
    """The certificate in the file, without its seal. Raises Malformed."""
    given = _object(data, ("format", "problem", "peak", "costs"), "the file")
    if not isinstance(given["problem"], str):
        _refuse("problem", "a SHA-256")
    peak = None
    if given["peak"] is not None:
        entry = _object(given["peak"], ("bound", "node"), "peak")
        node = None if entry["node"] is None else _integer(entry["node"], "peak: node")
        peak = PeakProof(_integer(entry["bound"], "peak: bound"), node)
    costs = tuple(_proof(entry, f"costs[{place}]") for place, entry in enumerate(_list(given["costs"], "costs")))
    return Certificate(given["problem"], costs, peak)


def _proof(entry: Any, where: str) -> CostProof:
    given = _object(entry, _COST, where)
    bound = None if given["bound"] is None else _integer(given["bound"], f"{where}: bound")
    return CostProof(
        budget=_integer(given["budget"], f"{where}: budget"),
        bound=bound,
        order=_integers(given["order"], f"{where}: order"),
        pivots=_integers(given["pivots"], f"{where}: pivots"),
        rows=tuple(_row(row, f"{where}: rows[{k}]") for k, row in enumerate(_list(given["rows"], f"{where}: rows"))),
        steps=tuple(
            _step_of(step, f"{where}: steps[{k}]") for k, step in enumerate(_list(given["steps"], f"{where}: steps"))
        ),
    )


def _row(entry: Any, where: str) -> tuple[str | int, ...]:
    match entry:
        case [str(kind), *about]:
            return (kind, *_integers(about, where))
    _refuse(where, "the name of a row")


def _step_of(entry: Any, where: str) -> Sum | Cases:
    if isinstance(entry, dict) and "number" in entry:
        given = _object(entry, _CASES, where)
        match given["number"]:
            case [str(what), group, about]:
                number = what, _integer(group, where), _integer(about, where)
                return Cases(number, _integer(given["zero"], where), _integer(given["one"], where))
        _refuse(where, "a number that is 0 or 1")
    given = _object(entry, _SUM, where)
    if not isinstance(given["costs"], bool):
        _refuse(f"{where}: costs", "true or false")
    return Sum(
        _integers(given["rows"], where),
        _integers(given["weights"], where),
        _integer(given["shift"], where, most=4096),
        given["costs"],
    )


def _object(entry: Any, fields: tuple[str, ...], where: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict) or set(entry) != set(fields):
        _refuse(where, f"an object with the fields {', '.join(fields)}")
    assert isinstance(entry, dict)
    return entry


def _list(entry: Any, where: str) -> list[Any]:
    if not isinstance(entry, list):
        _refuse(where, "a list")
    assert isinstance(entry, list)
    return entry


def _integers(entry: Any, where: str) -> tuple[int, ...]:
    return tuple(_integer(number, where) for number in _list(entry, where))


def _integer(entry: Any, where: str, most: int | None = None) -> int:
    if type(entry) is not int or entry < 0 or (most is not None and entry > most):
        _refuse(where, "a whole number that is not negative" + (f", and at most {most}" if most else ""))
    assert isinstance(entry, int)
    return entry


def _refuse(where: str, wanted: str) -> NoReturn:
    raise Malformed(f"{where} is not {wanted}")
