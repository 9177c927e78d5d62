"""Mixed precision: chooses the type in which each op of the forward pass computes, as PyTorch's autocast does.

Invariant: parameters, constants and running statistics stay float32, and are narrowed where an op reads them. Values
known before the graph runs never decide the type that data is computed in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import defs

from remat_cli.gradient.tape import FLOATS, Tape
from remat_cli.gradient.tensor import Tensor

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
PRECISIONS: Mapping[str, int] = {
    "float32": FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "bfloat16": onnx.TensorProto.BFLOAT16,
}
LARGEST_FINITE = {onnx.TensorProto.FLOAT16: 65504.0, onnx.TensorProto.BFLOAT16: 255 * 2.0**120}
BFLOAT16_OPSET = 22  # from this opset on, convolutions, pooling and activations are defined on bfloat16
NARROW = frozenset(
    {"MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose", "DeformConv", "LSTM", "GRU", "RNN", "Attention"}
)
WIDE = frozenset(  # sums, and ops that magnify errors or leave the range of float16
    {
        *("Softmax", "LogSoftmax", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "Softplus"),
        *("LayerNormalization", "RMSNormalization", "GroupNormalization", "InstanceNormalization"),
        *("BatchNormalization", "MeanVarianceNormalization", "LpNormalization", "LRN", "CumSum"),
        *("ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum"),
        *("ReduceLogSumExp", "Exp", "Log", "Pow", "Reciprocal", "Sinh", "Cosh", "Tan", "Asin", "Acos"),
    }
)
GIVES_BACK = frozenset({"BatchNormalization"})  # ops that compute in float32 and return their input's type


class Autocast:
    """`narrow`: the type of products. Values that are not `weak` depend on data, and decide the type of an op."""

    def __init__(self, tape: Tape, narrow: int) -> None:
        self.tape = tape
        self.narrow = narrow
        self.weak: set[str] = set()

    def fit(self, node: onnx.NodeProto) -> int | None:
        """Cast the inputs of the node. The result is the type that its first output is cast to, if any."""
        reads = [(index, name) for index, name in enumerate(node.input) if name and self._casts(node, index)]
        types = [self.tape.dtype(name) for _, name in reads]
        if not reads or DOUBLE in types:
            return None
        wanted = self._wanted(node.op_type, [name for _, name in reads])
        if wanted == self.narrow and not all(self._takes_narrow(node, index) for index, _ in reads):
            wanted = FLOAT
        for index, name in reads:
            node.input[index] = self._cast(name, wanted)
        return types[0] if node.op_type in GIVES_BACK and types[0] != wanted else None

    def give_back(self, node: onnx.NodeProto, writes: list[Tensor | None], kind: int | None) -> None:
        """Cast the first output to this type, if one is given; a result of weak values alone is weak."""
        if kind is not None and writes[0] is not None:
            with self.tape.recording():
                writes[0] = writes[0].cast(kind)
        if all(self._is_weak(name) for name in node.input if name):
            self.weak.update(tensor.name for tensor in writes if tensor is not None)

    def kept(self, kind: int) -> int:
        """The type in which a parameter is stored."""
        return FLOAT if kind in LARGEST_FINITE else kind

    def widened(self, array: np.ndarray) -> np.ndarray:
        """A known array, in float32 if it was in half precision."""
        half = onnx.helper.np_dtype_to_tensor_dtype(array.dtype) in LARGEST_FINITE
        return array.astype(np.float32) if half else array

    def _casts(self, node: onnx.NodeProto, index: int) -> bool:
        """Whether this input may have another float type; settings, such as Dropout's ratio, keep theirs."""
        if self.tape.dtype(node.input[index]) not in FLOATS or not defs.has(node.op_type, self.tape.opset, node.domain):
            return False
        schema = defs.get_schema(node.op_type, self.tape.opset, node.domain)
        kind = _formal(schema, index).type_str
        if node.op_type in NARROW or node.op_type in WIDE:
            return kind in {constraint.type_param_str for constraint in schema.type_constraints}
        shared = [formal.type_str for formal in (*schema.inputs, *schema.outputs)]
        return shared.count(kind) > 1 and node.op_type not in ("Cast", "CastLike")

    def _takes_narrow(self, node: onnx.NodeProto, index: int) -> bool:
        """Whether ONNX defines the op on the narrow type."""
        formal = _formal(defs.get_schema(node.op_type, self.tape.opset, node.domain), index)
        return f"tensor({onnx.TensorProto.DataType.Name(self.narrow).lower()})" in formal.types

    def _wanted(self, kind: str, reads: list[str]) -> int:
        if kind in NARROW:
            return self.narrow
        deciding = {self.tape.dtype(name) for name in reads if not self._is_weak(name)}
        return FLOAT if kind in WIDE or not deciding or FLOAT in deciding else self.narrow

    def _is_weak(self, name: str) -> bool:
        return name in self.weak or name in self.tape.constants

    def _cast(self, name: str, wanted: int) -> str:
        if self.tape.dtype(name) == wanted:
            return name
        if name in self.tape.constants:
            return self.tape.constant(_within(self.tape.constants[name], wanted), wanted).name
        with self.tape.recording():
            made = Tensor(self.tape, name).cast(wanted)
        if name in self.weak:
            self.weak.add(made.name)
        return made.name


def _formal(schema: defs.OpSchema, index: int) -> defs.OpSchema.FormalParameter:
    """The parameter of the op's schema for an input; the last parameter may be variadic."""
    return schema.inputs[min(index, len(schema.inputs) - 1)]


def _within(array: np.ndarray, wanted: int) -> np.ndarray:
    """Cast an array, keeping finite numbers finite: a mask of float32's lowest number does not become infinite."""
    if wanted not in LARGEST_FINITE:
        return array
    most = LARGEST_FINITE[wanted]
    return np.where(np.isfinite(array), np.clip(array, -most, most), array)
