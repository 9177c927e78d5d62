"""`*.cert.json`: the proof of a plan's bounds, or that there is no plan. See `docs/reference/certificates.md`.

Invariant: a file that is read back has the right form and is as it was written, to the last field, by a seal that
anyone can make. `solvers.proof.check` says whether it proves anything. Numbers are integers; nodes and values have the
numbers of the problem that is named.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from remat_cli.errors import BadInput
from remat_cli.formats import problemfile
from remat_cli.formats.declared import Undeclared, declared
from remat_cli.formats.files import write_whole
from remat_cli.model.problem_of import Named
from remat_cli.reading import read_object
from solvers.proof.certificate import Cases, Certificate, CostProof, Sum

FORMAT = "remat-certificate/1"
_COST = ("budget", "bound", "order", "pivots", "rows", "steps")
_SUM = ("rows", "weights", "shift", "costs")
_CASES = ("number", "zero", "one")
MOST_SHIFT = 4096


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
    data = read_object(path, FORMAT, "a certificate", "remat solve --certificate")
    try:
        return _certificate(data)
    except Undeclared as error:
        raise BadInput(f"{path}: {error}") from error


def _certificate(data: Any) -> Certificate:
    seal_given = data.pop("seal", None)
    found = parse_certificate(data)
    if seal_given != seal(found):
        raise Undeclared("its seal is broken: it is no longer what 'remat solve' wrote")
    return found


def parse_certificate(data: dict[str, Any]) -> Certificate:
    """The certificate in the file, without its seal. Raises Undeclared."""
    said = {name: value for name, value in data.items() if name != "format"}
    found: Certificate = declared(Certificate, said, exact=True, least=0)
    for proof in found.costs:
        for row in proof.rows:
            if not row or not isinstance(row[0], str) or not all(isinstance(part, int) for part in row[1:]):
                raise Undeclared(f"{list(row)} is not the name of a row")
        if any(isinstance(step, Sum) and step.shift > MOST_SHIFT for step in proof.steps):
            raise Undeclared(f"a shift is more than {MOST_SHIFT}")
    return found
