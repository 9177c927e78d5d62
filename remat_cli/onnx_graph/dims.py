"""Symbolic dimensions of inputs bound to sizes.

Invariant: afterwards every input is a tensor of static shape, and no value_info contradicts it: those that are not
static are dropped, to be inferred anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

import onnx

from remat_cli.errors import BadInput, Usage
from remat_cli.onnx_graph.load import TYPES
from remat_cli.onnx_graph.walk import static_shape


def bind(model: onnx.ModelProto, dims: Mapping[str, int], path: Path) -> dict[str, int]:
    """Set each dimension that `dims` names, by symbol (`batch`) or by place (`x:0`); returns those that were set."""
    used, left = dict[str, int](), dict[str, str]()
    stored = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        _require_tensor(value, path)
        if value.name not in stored:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                if not _bind_dim(value.name, axis, dim, dims, used, path):
                    symbol = f"{dim.dim_param!r} " if dim.dim_param else ""
                    left.setdefault(dim.dim_param or f"{value.name}:{axis}", f"{axis} {symbol}of input {value.name!r}")
    if left:
        flags = " ".join(f"--dim {quote(f'{hint}=N')}" for hint in left)
        more = f", and {len(left) - 1} more," if len(left) > 1 else ""
        unknown = next((f"; there is no {name!r} to bind" for name in dims if name not in used), "")
        raise BadInput(f"{path}: dimension {next(iter(left.values()))}{more} has no size; pass {flags}{unknown}")
    _drop_unknown(model, dims)
    return used


def refuse_unused(model: onnx.ModelProto, dims: Mapping[str, int], used: set[str], path: Path) -> None:
    """Refuse a dimension that binds nothing, because it is the user's mistake."""
    for name in dims:
        if name not in used:
            raise Usage(f"{path}: there is no dimension {name!r} to bind; the inputs have {_symbols(model, used)}")


def _require_tensor(value: onnx.ValueInfoProto, path: Path) -> None:
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value") or "value without a type"
        raise BadInput(f"{path}: input {value.name!r} is a {kind.removesuffix('_type')}; remat schedules tensors only")
    if value.type.tensor_type.elem_type not in TYPES:
        raise BadInput(f"{path} is damaged: input {value.name!r} has an element type that there is not")
    if not value.type.tensor_type.HasField("shape"):
        raise BadInput(f"{path}: input {value.name!r} has no shape; export the model with static input shapes")


def _bind_dim(
    name: str,
    axis: int,
    dim: onnx.TensorShapeProto.Dimension,
    dims: Mapping[str, int],
    used: dict[str, int],
    path: Path,
) -> bool:
    """Whether the dimension has a size."""
    place = f"{name}:{axis}"
    for key in (place, dim.dim_param):
        if key and key in dims:
            if dims[key] < 1:
                raise Usage(f"dimension {key!r} must be at least 1, not {dims[key]}")
            if key == place and dim.HasField("dim_value") and dim.dim_value != dims[key]:
                raise Usage(f"{path}: dimension {axis} of input {name!r} is fixed at {dim.dim_value}")
            dim.dim_value = used[key] = dims[key]
            return True
    return dim.HasField("dim_value")


def _symbols(model: onnx.ModelProto, used: set[str]) -> str:
    free = sorted({d.dim_param for v in model.graph.input for d in v.type.tensor_type.shape.dim if d.dim_param} | used)
    return ", ".join(free) if free else "no symbolic dimensions"


def _drop_unknown(model: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Bind the same symbols in outputs and value_info; inference finds the sizes that stay unknown."""
    for value in (*model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    known = [value for value in model.graph.value_info if static_shape(value.type) is not None]
    if len(known) < len(model.graph.value_info):
        del model.graph.value_info[:]
        model.graph.value_info.extend(known)
