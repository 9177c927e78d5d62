"""A model's weights put into a file of their own, which a runtime maps instead of copying.

Invariant: a tensor keeps its bytes. A model that has tensors in other files already is left as it is.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.stored import is_beside, tensors

WEIGHTS = "weights"  # the name of that file where nobody sees it
LEAST_BYTES = 1024  # of a tensor that is put there
PAGE_BYTES = 4096  # where a mapping can begin


def put_apart(model: onnx.ModelProto, folder: Path, name: str = WEIGHTS) -> None:
    """Move the initializers' bytes into a file of that name in the folder."""
    if any(map(is_beside, tensors(model))):
        return
    stored = [tensor for tensor in model.graph.initializer if len(tensor.raw_data) >= LEAST_BYTES]
    if not stored:
        return
    try:
        with (folder / name).open("wb") as file:
            for tensor in stored:
                file.seek(-file.tell() % PAGE_BYTES, 1)
                offset, length = file.tell(), file.write(tensor.raw_data)
                _refer(tensor, name, offset, length)
    except OSError as error:
        raise BadInput(f"cannot write the model's weights to {folder}: {error.strerror}") from error


def weights_file(model: onnx.ModelProto) -> Path | None:
    """The one file in which the model's initializers lie that are not in its own; None where that is not one."""
    found = {_entries(tensor)["location"] for tensor in model.graph.initializer if is_beside(tensor)}
    return Path(found.pop()) if len(found) == 1 else None


def offset_of(tensor: onnx.TensorProto) -> int:
    return int(_entries(tensor).get("offset", 0))


def length_of(tensor: onnx.TensorProto) -> int:
    return int(_entries(tensor).get("length", 0))


def _entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _refer(tensor: onnx.TensorProto, file: str, offset: int, length: int) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", str(offset)), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
