"""The tensors that a model stores, in its file or beside it; and how they get into a file of their own, which a
runtime maps instead of copying.

Invariant: `array_of` reads one tensor's bytes and keeps none. What lies beside a model lies within its folder, whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.onnx_graph.walk import subgraphs

FOLDED_ELEMENTS = 4096  # of a constant whose content is known: no shape, and no list of axes or lengths, has more
WEIGHTS = "weights"  # the name of that file where nobody sees it
LEAST_BYTES = 1024  # of a tensor that is put there
PAGE_BYTES = 4096  # where a mapping can begin


def array_of(tensor: onnx.TensorProto) -> np.ndarray:
    """The tensor's content. Raises BadInput for one that is not as large, or of the type, that it says."""
    try:
        return _map(tensor) if is_beside(tensor) else np.asarray(numpy_helper.to_array(tensor))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"tensor {tensor.name!r} is damaged: {error}") from error


def is_beside(tensor: onnx.TensorProto) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def files_beside(model: onnx.ModelProto, path: Path) -> set[Path]:
    """The files that the model's tensors lie in."""
    return {path.resolve().parent / entry.value for entry in places_beside(model)}


def places_beside(model: onnx.ModelProto) -> list[onnx.StringStringEntryProto]:
    """Where the model says that those of its tensors lie that are not in its file."""
    outside = filter(is_beside, tensors(model))
    return [entry for tensor in outside for entry in tensor.external_data if entry.key == "location"]


def leave_beside(model: onnx.ModelProto, path: Path) -> None:
    """Make `array_of` find what the file's initializers hold, which is not read; other tensors are brought in."""
    folder = path.resolve().parent
    for index, tensor in enumerate(tensors(model)):  # the initializers come first
        if is_beside(tensor):
            check_beside(tensor, path)
            for entry in tensor.external_data:
                entry.value = str(folder / entry.value) if entry.key == "location" else entry.value
            if index >= len(model.graph.initializer):
                bring_in(tensor)


def bring_in(tensor: onnx.TensorProto) -> None:
    """Make it hold its own bytes, wherever they are."""
    if is_beside(tensor):
        content = _bytes_beside(tensor).tobytes()
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.raw_data = content


def _map(tensor: onnx.TensorProto) -> np.ndarray:
    """Its numbers, read from the file as they are looked at."""
    content = _bytes_beside(tensor)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if prod(tensor.dims) * dtype.itemsize == content.size:
        return content.view(dtype).reshape(tensor.dims)
    held = onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=content.tobytes())
    return np.asarray(numpy_helper.to_array(held))  # less than a byte each, or damaged


def _bytes_beside(tensor: onnx.TensorProto) -> np.ndarray:
    """Of a tensor that `leave_beside` has seen."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    file, offset = Path(entries.get("location", "")), int(entries.get("offset", 0))
    if not file.is_absolute():
        raise BadInput(f"the content of tensor {tensor.name!r} is not in the model; load it with its external data")
    try:
        length = int(entries.get("length", 0)) or file.stat().st_size - offset
        return np.memmap(file, np.uint8, "r", offset, (length,)) if length else np.empty(0, np.uint8)
    except OSError as error:
        raise BadInput(f"the content of tensor {tensor.name!r} cannot be read: {error.strerror}") from error


def tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor stored in the model: in initializers, attributes, subgraphs and functions."""
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            yield from attribute.tensors
        for graph in subgraphs(node):
            yield from _of_graph(graph)


def check_beside(tensor: onnx.TensorProto, path: Path) -> None:
    """An external tensor must lie within the model's folder, whole."""
    where = f"{path}: external tensor {tensor.name!r}"
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    if "\0" in location:
        raise BadInput(f"{where} is stored at {location!r}, and no file can be called that")
    leaves = posix.is_absolute() or windows.is_absolute() or windows.drive or ".." in (*posix.parts, *windows.parts)
    folder = path.resolve().parent
    file = folder / location
    if not location or leaves or not _resolve(file).is_relative_to(folder):
        raise BadInput(f"{where} is stored at {location!r}, outside the model's folder; save the model with its data")
    try:
        size = file.stat().st_size
        end = int(entries.get("offset", 0)) + int(entries.get("length", 0))
    except OSError as error:
        raise BadInput(f"{where} is stored at {location!r}, which cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{where} has an offset or length that is not a number") from error
    if not file.is_file() or end > size or min(int(entries.get("offset", 0)), int(entries.get("length", 0))) < 0:
        raise BadInput(f"{where} should end at byte {end} of {location!r}, which has {size}; the file is truncated")


def _resolve(file: Path) -> Path:
    try:
        return file.resolve()
    except (OSError, RuntimeError):  # links in a circle
        return file


def constant_tensor(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a Constant node holds; None if that is sparse, or text."""
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
        if attribute.name in kinds:
            array = np.array(helper.get_attribute_value(attribute), kinds[attribute.name])
            return onnx.numpy_helper.from_array(array)
    return None


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
