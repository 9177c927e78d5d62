"""`.npz` files of arrays, by which processes hand them to each other.

Invariant: strings go as text. As Python objects they could only be read by running code.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write(arrays: Mapping[str, Any], path: Path) -> None:
    found = {name: np.asarray(array) for name, array in arrays.items()}
    plain: dict[str, Any] = {name: one.astype(str) if one.dtype.kind == "O" else one for name, one in found.items()}
    with path.open("wb") as file:
        np.savez(file, **plain)


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}
