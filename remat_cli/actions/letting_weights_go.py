"""Which weights of a model may be let go of while it runs: those that lie in one file beside it.

Invariant: a model whose weights are few, or lie elsewhere, has none.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from remat_cli.formats.weights import KEPT_BYTES, StoredWeight, Weights
from remat_cli.onnx_graph.apart import length_of, offset_of, weights_file
from remat_cli.onnx_graph.stored import is_beside

WORTH_IT = 4  # times as many bytes as stay: fewer weights are not worth it


def kept_of(model: onnx.ModelProto, folder: Path) -> int | None:
    """How many bytes of the model's weights are to stay in memory; None for all of them."""
    file = weights_file(model)
    return None if file is None or (folder / file).stat().st_size < WORTH_IT * KEPT_BYTES else KEPT_BYTES


def weights_of(model: onnx.ModelProto, folder: Path, kept: int) -> Weights | None:
    """The weights that lie in one file, of a model in that folder; None where they lie in several, or in none."""
    file = weights_file(model)
    if file is None:
        return None
    beside = [(one, _stored(one)) for one in model.graph.initializer if is_beside(one)]
    whole = tuple(
        stored for one, stored in beside if stored.bytes == length_of(one)
    )  # others take less than a byte each
    return Weights(str(folder / file), kept, whole)


def _stored(tensor: onnx.TensorProto) -> StoredWeight:
    width = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return StoredWeight(tensor.name, tensor.data_type, width, tuple(tensor.dims), offset_of(tensor))
