"""External tensors of a model that is written to another folder: their files are copied along, and never loaded whole.

Invariant: afterwards every external tensor lies inside the folder of the new model, where onnxruntime insists on it.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from remat_cli.errors import BadInput
from remat_cli.formats.files import copy_whole, sha256
from remat_cli.onnx_graph.stored import places_beside


def bring(model: onnx.ModelProto, source: Path, destination: Path) -> list[Path]:
    """Make `model`, read from `source`, find its tensors from `destination`; returns the data files put there."""
    old, new = source.resolve().parent, destination.resolve().parent
    if old == new:
        return []
    entries = places_beside(model)
    if old.is_relative_to(new):
        for entry in entries:
            entry.value = (old.relative_to(new) / entry.value).as_posix()
        return []
    placed = [_place(old / name, new / name) for name in dict.fromkeys(entry.value for entry in entries)]
    return [path for path in placed if path]


def _place(file: Path, target: Path) -> Path | None:
    """Copy the file there; a second name for it would make onnx refuse both models."""
    if target.exists():
        if not target.samefile(file) and (
            target.stat().st_size != file.stat().st_size or sha256(target) != sha256(file)
        ):
            raise BadInput(f"{target} is in the way: it is not the {file.name} that the model reads; write elsewhere")
        return None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_whole(file, target)
    except OSError as error:
        raise BadInput(f"cannot put the model's data at {target}: {error.strerror}") from error
    return target
