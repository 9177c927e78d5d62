"""The type and shape of every value: one walk over the nodes, in order.

Invariant: each node is asked once, when all that it reads is known: onnx, with the constants known so far, or our own
rule where onnx has no such op; then what the model itself declares; then what the user says (`--dim value:axis=N`).
Constants of a few thousand elements are folded along the way, for they are what Reshape and Expand read.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.ingest.constants import SMALL, constant_tensor, fold
from remat_cli.ingest.load import TYPES
from remat_cli.ingest.names import captures, subgraphs
from remat_cli.ingest.rules import ALIASES, BLOCKED, RULES, Call, Type
from remat_cli.model.graph import Value

Partial = tuple[int, tuple[int | None, ...]]  # a type with dimensions that are not known yet
INFERENCE_ERRORS = (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError)


def infer(model: onnx.ModelProto, path: Path, stated: Mapping[str, int]) -> tuple[dict[str, Value], set[str]]:
    """Every value of the main graph, and which of the `stated` dimensions (`value:axis`) were needed.

    The model's value_info is replaced by what was found.
    """
    walk = _Walk(model, path, stated)
    for node in model.graph.node:
        walk.visit(node)
    ends = {value.name for value in model.graph.output}
    inside = [name for node in model.graph.node for name in node.output if name and name not in ends]
    del model.graph.value_info[:]
    model.graph.value_info.extend(helper.make_tensor_value_info(name, *walk.types[name]) for name in inside)
    for output in model.graph.output:
        output.type.CopyFrom(helper.make_tensor_type_proto(*walk.types[output.name]))
    values = {name: Value(name, dtype, shape, size_of(dtype, shape)) for name, (dtype, shape) in walk.types.items()}
    return values, walk.used


def size_of(dtype: int, shape: tuple[int, ...]) -> int:
    """The bytes that a tensor's elements occupy in memory; types under a byte are packed."""
    return (prod(shape) * _bits(dtype) + 7) // 8


def _bits(dtype: int) -> int:
    if dtype == onnx.TensorProto.STRING:
        return 8 * 32  # a std::string; its characters, if many, lie elsewhere
    name = onnx.TensorProto.DataType.Name(dtype)
    packed = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
    return packed.get(name) or 8 * helper.tensor_dtype_to_np_dtype(dtype).itemsize


class _Walk:
    """What is known so far of values: their types, and the content of small constants."""

    def __init__(self, model: onnx.ModelProto, path: Path, stated: Mapping[str, int]) -> None:
        self.path, self.stated, self.used = path, stated, set[str]()
        self.opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        self.ir_version = model.ir_version
        self.types: dict[str, Type] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        for value in model.graph.input:
            if (known := _static(value.type)) is not None:
                self.types[value.name] = known
        for tensor in model.graph.initializer:
            self._store(tensor.name, tensor)
        for sparse in model.graph.sparse_initializer:
            self.types[sparse.values.name] = (sparse.values.data_type, tuple(sparse.dims))
        declared = ((v.name, v.type) for v in (*model.graph.value_info, *model.graph.output))
        self.declared = {name: known for name, kind in declared if (known := _static(kind))}

    def _store(self, name: str, tensor: onnx.TensorProto) -> None:
        self.types[name] = (tensor.data_type, tuple(tensor.dims))
        if prod(tensor.dims) > SMALL or tensor.data_type == onnx.TensorProto.STRING:
            return
        try:
            self.constants[name] = numpy_helper.to_array(tensor, str(self.path.parent))
        except (ValueError, OSError, onnx.checker.ValidationError) as error:
            raise BadInput(f"{self.path}: tensor {name!r} does not hold what its shape says: {error}") from error

    def visit(self, node: onnx.NodeProto) -> None:
        """Find the types of the node's outputs, and their content if it is constant and small."""
        found, trouble = self._types_of(node)
        for place, name in enumerate(node.output):
            if name:
                self.types[name] = self._settle(node, name, found.get(place), trouble)
                self.makers[name] = node
                self._know_empty(name)
        if len(node.output) == 1 and all(
            name in self.constants or node.op_type in ("Shape", "Size") for name in node.input
        ):
            array = fold(node, self.types, self.constants)
            if array is not None:
                self.constants[node.output[0]] = array

    def _know_empty(self, name: str) -> None:
        """A tensor without elements has known content, wherever it comes from; hidden shapes rest on that."""
        dtype, shape = self.types[name]
        if 0 in shape and dtype != onnx.TensorProto.STRING:
            self.constants[name] = np.zeros(shape, helper.tensor_dtype_to_np_dtype(dtype))

    def _types_of(self, node: onnx.NodeProto) -> tuple[dict[int, Partial], str]:
        """For each output a type, unknown dimensions None; and what onnx had against the node."""
        if node.op_type == "Constant" and (tensor := constant_tensor(node)) is not None:
            self._store(node.output[0], tensor)
            return {0: self.types[node.output[0]]}, ""
        schema, standard = self._schema(node)
        if schema is None and node.op_type in RULES:
            call = Call(node, self.types, self.constants, self.makers)
            try:
                return {place: kind for place, kind in enumerate(RULES[node.op_type](call)) if kind is not None}, ""
            except (ArithmeticError, IndexError, TypeError, ValueError) as error:
                return {}, f"{node.op_type} does not have the inputs it should have ({error})"
        if schema is None:
            return {}, ""
        ask = self._ask_for_node if next(subgraphs(node), None) is None else self._ask_for_subgraphs
        try:
            types = ask(schema, standard)
        except INFERENCE_ERRORS as error:
            return {}, " ".join(str(error).split())[:200]
        kinds = {kind.WhichOneof("value") for kind in types.values()} - {"tensor_type", None}
        found = ((place, _partial(types[name])) for place, name in enumerate(node.output) if name in types)
        return {place: kind for place, kind in found if kind is not None}, NO_TENSOR if kinds else ""

    def _ask_for_node(self, schema: onnx.defs.OpSchema, node: onnx.NodeProto) -> dict[str, onnx.TypeProto]:
        reads = [name for name in node.input if name]
        types: dict[str, onnx.TypeProto] = onnx.shape_inference.infer_node_outputs(
            schema,
            node,
            {name: helper.make_tensor_type_proto(*self.types[name]) for name in reads},
            {name: numpy_helper.from_array(self.constants[name]) for name in reads if name in self.constants},
            opset_imports=self.imports,
            ir_version=self.ir_version,
        )
        return types

    def _schema(self, node: onnx.NodeProto) -> tuple[onnx.defs.OpSchema | None, onnx.NodeProto]:
        """The node's schema; for one that only adds to a standard op, the standard op and its schema."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in ALIASES and domain != BLOCKED:
            return _find_schema(node.op_type, self.opsets.get(domain, 1), domain), node
        op_type, inputs = ALIASES.get(node.op_type, (node.op_type, 3))
        schema = _find_schema(op_type, self.opsets.get("", OPSET), "")
        if schema is None:
            return None, node
        attributes = [a for a in node.attribute if a.name in schema.attributes]
        plain = helper.make_node(op_type, node.input[:inputs], node.output, name=node.name)
        plain.attribute.extend(attributes)
        return schema, plain

    def _ask_for_subgraphs(self, _: onnx.defs.OpSchema, node: onnx.NodeProto) -> dict[str, onnx.TypeProto]:
        """A model of this one node, all it reads as inputs or initializers, through onnx's whole-graph inference."""
        reads = dict.fromkeys(name for name in (*node.input, *captures(node)) if name)
        graph = helper.make_graph(
            [node],
            "one",
            [helper.make_tensor_value_info(name, *self.types[name]) for name in reads if name not in self.constants],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
            [numpy_helper.from_array(self.constants[name], name) for name in reads if name in self.constants],
        )
        model = helper.make_model(graph, opset_imports=self.imports, ir_version=self.ir_version)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        return {value.name: value.type for value in inferred.graph.output}

    def _settle(self, node: onnx.NodeProto, name: str, found: Partial | None, trouble: str) -> Type:
        """Fill what is still unknown from the model's own words, then from the user's; refuse what remains."""
        declared = self.declared.get(name)
        if found is None:
            found = declared
        if found is None:
            raise BadInput(self._unknown(node, name, trouble or NO_RULE, None))
        dtype, sizes = found
        if dtype not in TYPES:
            raise BadInput(self._unknown(node, name, f"there is no type {dtype}", None))
        if declared and len(declared[1]) == len(sizes):
            sizes = tuple(d if s is None else s for s, d in zip(sizes, declared[1]))
        shape = []
        for axis, size in enumerate(sizes):
            key = f"{name}:{axis}"
            if size is None and key in self.stated:
                self.used.add(key)
                size = self.stated[key]
            if size is None:
                raise BadInput(self._unknown(node, name, "it depends on data", axis))
            shape.append(size)
        return dtype, tuple(shape)

    def _unknown(self, node: onnx.NodeProto, name: str, why: str, axis: int | None) -> str:
        domain = f"{node.domain}." if node.domain else ""
        remedy = "give it a static shape in the model's value_info" if axis is None else f"pass --dim {name}:{axis}=N"
        return (
            f"{self.path}: the size of value {name!r}, made by {domain}{node.op_type} {node.name!r}, "
            f"is not known: {why}; {remedy}"
        )


NO_TENSOR = "it is a sequence or optional, and remat schedules tensors only"
NO_RULE = "neither onnx nor remat has a shape rule for this op"
OPSET = onnx.defs.onnx_opset_version()


def _find_schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    return onnx.defs.get_schema(op_type, version, domain) if onnx.defs.has(op_type, version, domain) else None


def _static(kind: onnx.TypeProto) -> Type | None:
    tensor = kind.tensor_type
    if not kind.HasField("tensor_type") or not tensor.elem_type or not tensor.HasField("shape"):
        return None
    if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        return None
    return tensor.elem_type, tuple(dim.dim_value for dim in tensor.shape.dim)


def _partial(kind: onnx.TypeProto) -> Partial | None:
    tensor = kind.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        return None
    return tensor.elem_type, tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
