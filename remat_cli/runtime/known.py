"""The versions of ONNX Runtime with which the planned places and the layout of default sessions were tested."""

from __future__ import annotations

from importlib import metadata

OLDEST, NEWEST = (1, 23), (1, 31)
DISTRIBUTIONS = ("onnxruntime-gpu", "onnxruntime")


def unknown_version() -> list[str]:
    """A note if the installed version is another, of whichever distribution."""
    found = _installed_version()
    if found is None or OLDEST <= _numbers(found) <= NEWEST:
        return []
    oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
    return [f"onnxruntime {found}: what sessions hold was checked with {oldest} to {newest}; `verify` measures it"]


def _installed_version() -> str | None:
    for name in DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
