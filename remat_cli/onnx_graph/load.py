"""The one reader of model files: what can be checked of a model without knowing its ops is checked here.

Invariant: what comes back has a graph, opsets we understand, and external tensors (left where they are) that lie whole
inside the model's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError

from remat_cli.errors import BadInput
from remat_cli.limits import MODEL_BYTES
from remat_cli.onnx_graph.stored import check_beside, is_beside, leave_beside, tensors
from remat_cli.onnx_graph.walk import nodes_within, subgraphs
from remat_cli.reading import read_whole

UNUSED_OPSET = 18  # of a model that has no op of the standard domain, and says so by naming none
IN_MEMORY = Path("the model in memory")  # as errors call it; its external tensors lie in the working directory
TYPES = set(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}


def load(path: Path) -> tuple[onnx.ModelProto, str]:
    """The model, without the bytes of external tensors, and the SHA-256 of the file."""
    if path.is_file() and path.stat().st_size > MODEL_BYTES:
        raise BadInput(f"{path} is larger than an ONNX file can be (2 GiB); save its weights as external data")
    content = read_whole(path, MODEL_BYTES)
    return parse_model(content, path), hashlib.sha256(content).hexdigest()


def content_of(model: onnx.ModelProto) -> bytes:
    """The bytes of a model's file."""
    try:
        return bytes(model.SerializeToString(deterministic=True))
    except (ValueError, EncodeError) as error:
        raise BadInput("the model in memory is too large for ONNX (2 GiB); save its weights apart") from error


def load_with_tensors(given: Path | onnx.ModelProto) -> onnx.ModelProto:
    """The model, of any opset, ready to be changed: `array_of` finds what it stores, in the file or beside it. One in
    memory is read as one in a file, and left as it is."""
    if not isinstance(given, Path):
        return parse_model(content_of(given), IN_MEMORY)
    model, _ = load(given)
    leave_beside(model, given)
    return model


def parse_model(content: bytes, path: Path) -> onnx.ModelProto:
    """The model that `content` encodes, checked; `path` is what it is called."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        what = kind_of_content(content)
        raise BadInput(f"{path} is not an ONNX model{what or ', or it is truncated; export it again'}") from error
    if not model.HasField("graph") and (what := kind_of_content(content)):
        raise BadInput(f"{path} is not an ONNX model{what}")
    _check_header(model, path)
    if any(not isinstance(text, str) for text in _texts(model)):
        raise BadInput(f"{path} is damaged: it holds names that are not text; export it again")
    _open_dimensions(model.graph)
    if any(size < 0 for tensor in model.graph.initializer for size in tensor.dims):
        raise BadInput(f"{path} is damaged: it stores a tensor with a dimension below zero")
    for tensor in tensors(model):
        if tensor.data_type not in TYPES or min(tensor.dims, default=0) < 0:
            raise BadInput(f"{path} is damaged: tensor {tensor.name!r} has a type or shape that there is not")
        if is_beside(tensor):
            check_beside(tensor, path)
    return model


def _check_header(model: onnx.ModelProto, path: Path) -> None:
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise BadInput(f"{path} is not an ONNX model: it holds no graph")
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    version = opsets.get("", opsets.get("ai.onnx"))
    newest = onnx.defs.onnx_opset_version()
    if version is None and model.opset_import and not any(map(_is_standard, nodes_within(model.graph.node))):
        version = UNUSED_OPSET
        model.opset_import.add(domain="", version=version)
    if version is None:
        raise BadInput(f"{path} names no version of the standard ONNX opset; the file may be truncated")
    if version < 1:
        raise BadInput(f"{path} is damaged: it names opset {version}; export it again")
    if version > newest:
        raise BadInput(f"{path} uses opset {version}; the onnx package here knows {newest}: install a newer onnx")


def _is_standard(node: onnx.NodeProto) -> bool:
    return node.domain in ("", "ai.onnx")


def _open_dimensions(graph: onnx.GraphProto) -> None:
    """Leave open what some exporters write as -1; onnx's own inference would stumble over it."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")


def _texts(model: onnx.ModelProto) -> Iterator[object]:
    """Every name in the model; the decoder leaves what is not UTF-8 as bytes."""
    for entry in model.opset_import:
        yield entry.domain
    yield from _texts_of_graph(model.graph)
    for function in model.functions:
        yield from (function.name, function.domain, *function.input, *function.output)
        yield from _texts_of_nodes(function.node)


def _texts_of_graph(graph: onnx.GraphProto) -> Iterator[object]:
    for named in (graph.input, graph.output, graph.value_info, graph.initializer):
        yield from (entry.name for entry in named)
    for value in graph.input:
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    yield from _texts_of_nodes(graph.node)


def _texts_of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield attribute.name
        for graph in subgraphs(node):
            yield from _texts_of_graph(graph)


PYTORCH = "it is PyTorch's: export the module itself, torch.onnx.export(module, (example,), 'm.onnx', dynamo=True)"
BEGINNINGS = (  # at which byte, what stands there, and what that is
    (0, b"PK\x03\x04", f"a zip archive; if torch.save wrote it, {PYTORCH}"),
    (0, b"\x80\x02", f"a pickle; if torch.save wrote it, {PYTORCH}"),
    (0, b"\x80\x04", f"a pickle; if torch.save wrote it, {PYTORCH}"),
    (0, b"\x80\x05", f"a pickle; if torch.save wrote it, {PYTORCH}"),
    (0, b"version https://git-lfs", "a pointer of Git LFS; `git lfs pull` brings the model"),
    (0, b"\x89HDF\r\n", "an HDF5 file, as Keras writes it; convert it with tf2onnx"),
    (4, b"TFL3", "a TensorFlow Lite model; convert it with tf2onnx"),
    (4, b"ORTM", "a model in ONNX Runtime's own format; give the .onnx file that it was made from"),
    (8, b'{"', "a safetensors file, which holds weights alone; export the module"),
    (0, b"\x1f\x8b", "compressed by gzip; decompress it first"),
)
TEXT_BYTES = 4096  # of a file's beginning: enough to see whether it is text


def kind_of_content(content: bytes) -> str:
    """What the file is, as the end of a sentence; nothing where it is not known."""
    if not content:
        return ": it is empty"
    for at, beginning, words in BEGINNINGS:
        if content[at:].startswith(beginning):
            return f": it is {words}"
    return f": it is text that begins {_begins(content)!r}" if _is_text(content[:TEXT_BYTES]) else ""


def _is_text(beginning: bytes) -> bool:
    """A character may be cut in two at the end."""
    words = beginning.decode("utf-8", "ignore")
    whole = len(words.encode()) >= len(beginning) - 3
    return whole and all(letter.isprintable() or letter in "\t\r\n" for letter in words)


def _begins(content: bytes) -> str:
    return " ".join(content[:TEXT_BYTES].decode("utf-8", "ignore").split())[:30]
