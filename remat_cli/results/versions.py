"""The versions that an answer depends on beyond the question: this code, and the programs that it calls.

Invariant: code that differs in a byte has another version, installed or run from its sources.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

ASKED = ("pyscipopt", "onnxruntime-gpu", "onnxruntime", "onnx", "numpy")  # distributions, if they are there
PACKAGES = ("profiles", "remat_cli", "solvers")
SUFFIXES = frozenset({".py", ".yaml", ".so", ".pyd"})


@cache
def versions() -> dict[str, str]:
    """The versions by name; SCIP's own is given beside that of its Python package, which may be built for any."""
    found = {"remat": f"{_version('remat') or 'unknown'}+{_code()}", "scip": _scip()}
    return found | {name: version for name in ASKED if (version := _version(name))}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _code() -> str:
    """A digest of every file of the packages that takes part in an answer."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted(file for file in (root / package).rglob("*") if file.suffix in SUFFIXES):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _scip() -> str:
    """SCIP's version, from the name of the library that came with its package; a library from elsewhere is asked."""
    distribution = Path(str(metadata.distribution("pyscipopt").locate_file("pyscipopt.libs")))
    bundled = sorted(path.name for path in distribution.glob("libscip*")) if distribution.is_dir() else []
    if bundled:
        return bundled[0]
    from solvers.scip import version

    return version()
