"""A graph in the making: nodes emitted one by one, each output's static shape known at once.

Invariant: every value's type is static and stands in `types`; emitting one computation twice gives the same values, so
rules may ask for what they need without counting who asked before. A node whose types onnx cannot infer is refused
with what to do about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

from remat_cli.errors import BadInput
from remat_cli.gradient.tensor import Tensor
from remat_cli.limits import TENSOR_BYTES
from remat_cli.onnx_graph.stored import FOLDED_ELEMENTS
from remat_cli.onnx_graph.walk import static_shape

WRITTEN_OUT_ELEMENTS = 1 << 26  # the most elements of a constant that a gradient needs
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)

Key = tuple[Any, ...]  # two computations or constants with one key are the same
_schemas: dict[tuple[str, int, str], Any] = {}


@dataclass(slots=True)
class Taped:
    """One op that can be differentiated: a node, or several that stand for one (then `saved` holds what they keep)."""

    kind: str
    name: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    attributes: dict[str, Any]
    node: onnx.NodeProto | None
    tape: Tape
    saved: dict[str, Any] = field(default_factory=dict)
    needs: tuple[bool, ...] = ()  # for each input, whether its gradient is wanted

    @property
    def x(self) -> Tensor:
        return self.input(0)

    @property
    def y(self) -> Tensor:
        return self.output(0)

    def input(self, index: int) -> Tensor:
        tensor = self.inputs[index]
        assert tensor is not None, f"{self.kind} {self.name} has no input {index}"
        return tensor

    def optional(self, index: int) -> Tensor | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int) -> Tensor:
        """An output, added to the forward node if it was left out."""
        if index < len(self.outputs) and (known := self.outputs[index]) is not None:
            return known
        assert self.node is not None
        extra = self.tape.add_output(self.node, index)
        padded = list(self.outputs) + [None] * (index + 1 - len(self.outputs))
        padded[index] = extra
        self.outputs = tuple(padded)
        return extra

    def get(self, attribute: str, default: Any = None) -> Any:
        """What an attribute says; ONNX keeps text as bytes."""
        said = self.attributes.get(attribute, default)
        return said.decode(errors="replace") if isinstance(said, bytes) else said

    def array(self, index: int, what: str) -> np.ndarray:
        """An input that must be a constant, such as axes."""
        found = self.tape.constants.get(self.input(index).name)
        if found is None:
            raise self.refuse(f"its {what} must be a constant")
        return found

    def only_first(self, gradients: Sequence[Tensor | None]) -> None:
        """Refuse gradients of the other outputs, which the loss must not depend on."""
        if any(gradients):
            raise self.refuse("the loss depends on an output besides the first")

    def refuse(self, why: str) -> BadInput:
        return BadInput(f"cannot differentiate {self.kind} node '{self.name}': {why}")


class Tape:
    """Nodes so far, with their types, constants and the steps a gradient goes back over."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.types: dict[str, onnx.TypeProto] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.steps: list[Taped] = []
        self.largest = 0  # elements of the largest value that a step makes
        # output of a Reshape emitted here -> its input, so that chains of them collapse
        self.reshaped: dict[str, Tensor] = {}
        self._memo: dict[Key, tuple[str, ...]] = {}
        self._pool: dict[Key, str] = {}
        self._names: Counter[str] = Counter()
        self._node_stems: Counter[str] = Counter()
        self._node_names: set[str] = set()
        self.recorded: set[str] = set()  # values that some step makes, so that their gradients go back over that one
        self._recording = False
        self._scope = "training"

    # -- values ---------------------------------------------------------------------------------------------------
    def declare(self, name: str, dtype: int, shape: Sequence[int]) -> Tensor:
        if name in self.types:
            raise BadInput(
                f"the model has a value called '{name}' already, and the training graph needs that name; "
                "rename it; a training graph needs no grad: go on with `remat profile`"
            )
        if prod(shape) > TENSOR_BYTES:
            raise BadInput(f"'{name}' has the shape {list(shape)}, which no machine can hold")
        self.types[name] = helper.make_tensor_type_proto(dtype, list(shape))
        return Tensor(self, name)

    def store(self, name: str, array: np.ndarray) -> Tensor:
        """A constant under a name of its own."""
        self.constants[name] = array
        return self.declare(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def constant(self, value: Any, dtype: int) -> Tensor:
        """A constant; equal ones share one name."""
        try:
            array = np.asarray(value).astype(helper.tensor_dtype_to_np_dtype(dtype))
        except OverflowError as error:
            raise BadInput(f"a number that the gradient would need cannot be: {error}") from error
        key = (dtype, array.shape, array.tobytes())
        if key not in self._pool:
            self._pool[key] = self.fresh(f"constant/{'x'.join(map(str, array.shape)) or 'scalar'}")
            self.store(self._pool[key], array)
        return Tensor(self, self._pool[key])

    def integers(self, values: Sequence[int] | np.ndarray | int) -> Tensor:
        return self.constant(np.asarray(values, np.int64), onnx.TensorProto.INT64)

    def fresh(self, stem: str) -> str:
        """A name nothing else has."""
        return _free(stem, self._names, self.types)

    def fresh_node(self, stem: str) -> str:
        """A node name nothing else has."""
        name = _free(stem, self._node_stems, self._node_names)
        self._node_names.add(name)
        return name

    def reserve(self, name: str) -> None:
        """Keep a name for later: `fresh` will not give it out."""
        self._names[name] += 1

    # -- nodes ----------------------------------------------------------------------------------------------------
    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Name what is emitted inside."""
        before, self._scope = self._scope, name
        yield
        self._scope = before

    def op(self, kind: str, *inputs: Tensor | None, **attributes: Any) -> Tensor:
        return self.ops(kind, *inputs, outputs=1, **attributes)[0]

    def ops(self, kind: str, *inputs: Tensor | None, outputs: int, **attributes: Any) -> tuple[Tensor, ...]:
        """Emit a node, or find the one that computes the same already."""
        given = {key: value for key, value in attributes.items() if value is not None}
        reads = [tensor.name if tensor is not None else "" for tensor in inputs]
        while reads and not reads[-1]:
            reads.pop()
        key = (kind, tuple(reads), _hashable(given), outputs)
        if key not in self._memo:
            name = self.fresh(f"{self._scope}/{kind}")
            writes = [name] if outputs == 1 else [self.fresh(f"{name}/{index}") for index in range(outputs)]
            try:
                node = helper.make_node(kind, reads, writes, name=self.fresh_node(name), **given)
            except (OverflowError, TypeError, ValueError) as error:
                raise BadInput(f"an attribute that the gradient's {kind} would need cannot be: {error}") from error
            self.append(node)
            self._memo[key] = tuple(writes)
        found = tuple(Tensor(self, name) for name in self._memo[key])
        if self._recording and found[0].name not in self.recorded:
            self.step(kind, inputs, found, given)
        return found

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what is emitted inside, so that it can be differentiated op by op."""
        self._recording = True
        yield
        self._recording = False

    def step(
        self,
        kind: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor | None],
        attributes: dict[str, Any],
        **saved: Any,
    ) -> None:
        """Note that the nodes just emitted stand for one op with a rule of its own."""
        self.note(Taped(kind, self._scope, tuple(inputs), tuple(outputs), attributes, None, self, saved))

    def note(self, step: Taped) -> None:
        """Add a step to those that a gradient goes back over."""
        self.steps.append(step)
        self.largest = max(self.largest, *(y.size for y in step.outputs if y is not None))
        self.recorded.update(y.name for y in step.outputs if y is not None)

    def append(self, node: onnx.NodeProto) -> None:
        """Add a node as it is, once its outputs' types are known."""
        for name, kind in self.infer(node).items():
            self.types[name] = kind
        self.nodes.append(node)

    def remember(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> None:
        """Let later requests for this computation find a node that was appended."""
        key = (node.op_type, tuple(node.input), _hashable(attributes), len(node.output))
        self._memo.setdefault(key, tuple(node.output))

    def infer(self, node: onnx.NodeProto) -> dict[str, onnx.TypeProto]:
        return infer_types(node, self.types, self.constants, self.opset)

    def add_output(self, node: onnx.NodeProto, index: int) -> Tensor:
        while len(node.output) <= index:
            node.output.append("")
        node.output[index] = self.fresh(f"{node.name}/output{index}")
        self.types[node.output[index]] = self.infer(node)[node.output[index]]
        return Tensor(self, node.output[index])

    def check_size(self, what: str, *sizes: int) -> None:
        """A constant of these sizes is about to be written out."""
        if prod(sizes) > WRITTEN_OUT_ELEMENTS:
            raise BadInput(
                f"{what} would take a constant of {' by '.join(map(str, sizes))} elements; that is too large"
            )

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(dim.dim_value for dim in self.types[name].tensor_type.shape.dim)

    def dtype(self, name: str) -> int:
        return int(self.types[name].tensor_type.elem_type)


def _free(stem: str, asked: Counter[str], taken: Container[str]) -> str:
    """The stem, or the first with a number behind it that is free. `asked`: how often each stem was."""
    while True:
        count = asked[stem]
        asked[stem] += 1
        name = f"{stem}_{count}" if count else stem
        if name not in taken:
            return name


def _hashable(attributes: dict[str, Any]) -> Key:
    return tuple(
        (key, tuple(value) if isinstance(value, (list, tuple)) else _plain(value))
        for key, value in sorted(attributes.items())
    )


def _plain(value: Any) -> Any:
    return value.SerializeToString() if hasattr(value, "SerializeToString") else value


def infer_types(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], constants: Mapping[str, np.ndarray], opset: int
) -> dict[str, onnx.TypeProto]:
    """The types of the node's outputs by name."""
    known = {
        name: numpy_helper.from_array(constants[name], name)
        for name in node.input
        if name in constants and constants[name].size <= FOLDED_ELEMENTS
    }
    reads = {name: types[name] for name in node.input if name}
    schema, imports = _schema(node.op_type, opset, node.domain), [helper.make_opsetid("", opset)]
    try:
        found = shape_inference.infer_node_outputs(schema, node, reads, known, opset_imports=imports)
    except (shape_inference.InferenceError, onnx.checker.ValidationError, AttributeError, MemoryError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise BadInput(f"{node.op_type} node '{node.name}' does not fit its inputs: {reason}") from error
    for name in filter(None, node.output):
        _check_static(node, name, found.get(name))
    return {name: kind for name, kind in found.items() if name}


def _check_static(node: onnx.NodeProto, name: str, kind: onnx.TypeProto | None) -> None:
    if kind is not None and any(dim.dim_value < 0 for dim in kind.tensor_type.shape.dim):
        raise BadInput(f"'{name}' ({node.op_type} node '{node.name}') would have a dimension below zero")
    if kind is None or static_shape(kind) is None:
        raise BadInput(
            f"the shape of '{name}' ({node.op_type} node '{node.name}') is not static; "
            "bind the inputs' dimensions with --batch or --shape"
        )


def _schema(kind: str, opset: int, domain: str) -> Any:
    key = (kind, opset, domain)
    if key not in _schemas:
        try:
            _schemas[key] = defs.get_schema(kind, opset, domain)
        except defs.SchemaError as error:
            place = f"domain '{domain}'" if domain else f"opset {opset}"
            raise BadInput(f"{kind} is not an operator of {place}") from error
    return _schemas[key]
