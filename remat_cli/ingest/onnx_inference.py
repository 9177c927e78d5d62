"""The types of a node's outputs by onnx itself: from the node's schema, or from inference over a graph around it.

Invariant: only the opsets are kept from node to node; onnx's own errors about a node are raised in its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.ingest.known_control import settle_branch
from remat_cli.ingest.rules import ALIASES, BLOCKED, Type
from remat_cli.ingest.runtime_types import Partial
from remat_cli.onnx_graph.walk import captures, has_subgraph, static_shape

Types = Mapping[str, Partial]
Constants = Mapping[str, np.ndarray]
INFERENCE_ERRORS = (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError)
NEWEST_OPSET = onnx.defs.onnx_opset_version()


@dataclass(frozen=True, slots=True)
class Made:
    """What a node makes. `types`: of its outputs by place, where they are tensors of known rank. `others`: whether any
    is no tensor."""

    types: Mapping[int, Partial]
    others: bool


class OnnxInference:
    """Infers the outputs of a model's nodes at the model's opsets."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.imports = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        self.ir_version = model.ir_version
        self.known: dict[object, Made] = {}  # by what a node looks like, but for names

    def outputs_of(self, schema: onnx.defs.OpSchema, node: onnx.NodeProto, types: Types, constants: Constants) -> Made:
        """The types of the outputs of a node that has this schema."""
        if has_subgraph(node):
            return _made(node, self._ask_for_subgraphs(node, types, constants))
        alike = _looks_of(node, types, constants)
        if alike not in self.known:
            self.known[alike] = _made(node, self._ask_for_node(schema, node, types, constants))
        return self.known[alike]

    def outputs_of_graph(self, graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
        """The types of a graph's outputs; empty where onnx rejects the graph."""
        model = helper.make_model(graph, opset_imports=self.imports, ir_version=self.ir_version)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except INFERENCE_ERRORS:
            return {}
        given = {value.name: value.type for value in inferred.graph.input}  # onnx tells none that is handed on as it is
        return {value.name: given.get(value.name, value.type) for value in inferred.graph.output}

    def schema_of(self, node: onnx.NodeProto) -> tuple[onnx.defs.OpSchema | None, onnx.NodeProto]:
        """The node's schema. An op that only extends a standard op gets that op and its schema."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type not in ALIASES and domain != BLOCKED:
            return _find_schema(node.op_type, self.opsets.get(domain, 1), domain), node
        op_type, inputs = ALIASES.get(node.op_type, (node.op_type, 3))
        schema = _find_schema(op_type, self.opsets.get("", NEWEST_OPSET), "")
        if schema is None or schema.deprecated:
            return None, node
        attributes = [a for a in node.attribute if a.name in schema.attributes]
        plain = helper.make_node(op_type, node.input[:inputs], node.output, name=node.name)
        plain.attribute.extend(attributes)
        return schema, plain

    def _ask_for_node(
        self, schema: onnx.defs.OpSchema, node: onnx.NodeProto, types: Types, constants: Constants
    ) -> dict[str, onnx.TypeProto]:
        reads = [name for name in node.input if name]
        made: dict[str, onnx.TypeProto] = onnx.shape_inference.infer_node_outputs(
            schema,
            node,
            {name: tensor_type(types[name]) for name in reads},
            {name: numpy_helper.from_array(constants[name]) for name in reads if name in constants},
            opset_imports=self.imports,
            ir_version=self.ir_version,
        )
        return made

    def _ask_for_subgraphs(self, node: onnx.NodeProto, types: Types, constants: Constants) -> dict[str, onnx.TypeProto]:
        """The types that onnx's whole-graph inference finds for a model of this one node, with all it reads as inputs
        or initializers."""
        reads = dict.fromkeys(name for name in (*node.input, *captures(node)) if name)
        graph = helper.make_graph(
            [settle_branch(node, constants)],
            "one",
            [helper.make_tensor_value_info(name, *types[name]) for name in reads if name not in constants],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
            [numpy_helper.from_array(constants[name], name) for name in reads if name in constants],
        )
        model = helper.make_model(graph, opset_imports=self.imports, ir_version=self.ir_version)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        return {value.name: value.type for value in inferred.graph.output}


def _made(node: onnx.NodeProto, kinds: Mapping[str, onnx.TypeProto]) -> Made:
    found = ((place, partial_type(kinds[name])) for place, name in enumerate(node.output) if name in kinds)
    others = {kind.WhichOneof("value") for kind in kinds.values()} - {"tensor_type", None}
    return Made({place: kind for place, kind in found if kind is not None}, bool(others))


def _looks_of(node: onnx.NodeProto, types: Types, constants: Constants) -> object:
    """All that the types of a node's outputs depend on, for models repeat the same layers. Inputs of one name have one
    place."""
    first: dict[str, int] = {}
    inputs = []
    for place, name in enumerate(node.input):
        array = constants.get(name)
        content = None if array is None else (array.dtype.str, array.shape, repr(array.tolist()))
        inputs.append((first.setdefault(name, place), types[name] if name else None, content))
    attributes = tuple(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return node.domain, node.op_type, attributes, tuple(inputs), tuple(bool(name) for name in node.output)


@lru_cache
def tensor_type(known: Partial) -> onnx.TypeProto:
    """The type as onnx reads it, made once for the many values of one type; nobody may change it."""
    return helper.make_tensor_type_proto(*known)


@lru_cache
def _find_schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    return onnx.defs.get_schema(op_type, version, domain) if onnx.defs.has(op_type, version, domain) else None


def static_type(kind: onnx.TypeProto) -> Type | None:
    shape = static_shape(kind)
    return None if shape is None or not kind.tensor_type.elem_type else (kind.tensor_type.elem_type, shape)


def partial_type(kind: onnx.TypeProto) -> Partial | None:
    tensor = kind.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        return None
    return tensor.elem_type, tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
