"""The type and shape of every value: one walk over the nodes, in order.

Invariant: each node is visited once, when the types of all that it reads are known. The sources are onnx with the
constants known so far, or our own rule where onnx has no such op. After these come the model's own declarations, and
then the user's (`--dim value:axis=N`). Constants of a few thousand elements are folded along the way, because Reshape
and Expand read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import count
from math import prod
from pathlib import Path
from typing import cast

import numpy as np
import onnx
from onnx import helper, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.ingest.constants import fold
from remat_cli.ingest.known_control import body_as_begun, branches_of, depends_on_data, taken_branch, trips
from remat_cli.ingest.loose import Loose
from remat_cli.ingest.onnx_inference import (
    INFERENCE_ERRORS,
    Constants,
    OnnxInference,
    Types,
    partial_type,
    static_type,
    tensor_type,
)
from remat_cli.ingest.rules import RULES, Type, TypedNode
from remat_cli.ingest.runtime_types import Partial, ask_runtime
from remat_cli.model.graph import Value
from remat_cli.onnx_graph.load import TYPES
from remat_cli.onnx_graph.stored import FOLDED_ELEMENTS, constant_tensor
from remat_cli.onnx_graph.walk import captures, has_subgraph


class UnknownSize(BadInput):
    """The size of an op's output depends on data; `places` lists the values and axes, EVERY_AXIS if the rank does.
    `unknown` says what is not known."""

    def __init__(self, unknown: str, places: Sequence[tuple[str, int]]) -> None:
        self.unknown, self.places = unknown, tuple(places)
        super().__init__(self.or_else("`remat profile` sees what random inputs make"))
        self.path = Path()
        self.model: onnx.ModelProto | None = None  # the model with its functions replaced, its nodes in order

    def or_else(self, remedy: str) -> str:
        """What is not known, and what to do: to state it, or else the remedy."""
        stated = " ".join(f"--dim {value}:{max(0, axis)}=N" for value, axis in self.places)
        return f"{self.unknown}; pass {stated}, or {remedy}"


@dataclass(frozen=True, slots=True)
class InferredValues:
    """Every value of the main graph, and which of the stated dimensions (`value:axis`) were `needed`.

    `loose`: values whose size is stated, or may follow from a stated one: other data may make other sizes. `by_data`:
    the names of Ifs and Loops that other data may run differently.
    """

    values: dict[str, Value]
    needed: set[str]
    loose: frozenset[str]
    by_data: frozenset[str]


def infer(model: onnx.ModelProto, path: Path, stated: Mapping[str, int]) -> InferredValues:
    """Infer all types; they replace the model's value_info, which leaves out the values whose size is loose."""
    walk = _Walk(model, path, stated)
    for node in model.graph.node:
        walk.visit(node)
    left_out = {"", *walk.loose.sizes, *(value.name for value in model.graph.output)}
    inside = [name for node in model.graph.node for name in node.output if name not in left_out]
    del model.graph.value_info[:]
    model.graph.value_info.extend(onnx.ValueInfoProto(name=name, type=tensor_type(walk.types[name])) for name in inside)
    for output in (output for output in model.graph.output if output.name not in walk.loose.sizes):
        output.type.CopyFrom(tensor_type(walk.types[output.name]))
    values = {name: Value(name, dtype, shape, size_of(dtype, shape)) for name, (dtype, shape) in walk.types.items()}
    return InferredValues(values, walk.used, frozenset(walk.loose.sizes), frozenset(walk.by_data))


def size_of(dtype: int, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor's elements in memory; types smaller than a byte are packed."""
    return (prod(shape) * _bits(dtype) + 7) // 8


def _bits(dtype: int) -> int:
    if dtype == onnx.TensorProto.STRING:
        return 8 * 32  # a std::string; long ones keep their characters elsewhere
    name = onnx.TensorProto.DataType.Name(dtype)
    packed = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
    return packed.get(name) or 8 * helper.tensor_dtype_to_np_dtype(dtype).itemsize


class _Walk:
    """What is known about values so far: their types, and the content of small constants."""

    def __init__(self, model: onnx.ModelProto, path: Path, stated: Mapping[str, int]) -> None:
        self.path, self.stated, self.used = path, stated, set[str]()
        self.onnx = OnnxInference(model)
        self.types: dict[str, Type] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        self.loose = Loose()
        self.by_data: set[str] = set()
        for value in model.graph.input:
            if (known := static_type(value.type)) is not None:
                self.types[value.name] = known
        for tensor in model.graph.initializer:
            self._store(tensor.name, tensor)
        for sparse in model.graph.sparse_initializer:
            self.types[sparse.values.name] = (sparse.values.data_type, tuple(sparse.dims))
        declared = ((v.name, v.type) for v in (*model.graph.value_info, *model.graph.output))
        self.declared = {name: known for name, kind in declared if (known := static_type(kind))}

    def _store(self, name: str, tensor: onnx.TensorProto) -> None:
        self.types[name] = (tensor.data_type, tuple(tensor.dims))
        if prod(tensor.dims) > FOLDED_ELEMENTS or tensor.data_type == onnx.TensorProto.STRING:
            return
        try:
            self.constants[name] = numpy_helper.to_array(tensor, str(self.path.parent))
        except (ValueError, OSError, onnx.checker.ValidationError) as error:
            raise BadInput(f"{self.path}: tensor {name!r} does not hold what its shape says: {error}") from error

    def visit(self, node: onnx.NodeProto) -> None:
        """Find the types of the node's outputs, and their content where it is constant and small."""
        found, trouble = self._types_of(node, self.types, self.constants)
        reached = self.loose.reaches(node)
        always = self._always(node) if reached else found
        if depends_on_data(node, self.constants):
            self.by_data.add(node.name)
        made = {
            name: self._settle(node, name, found.get(place), trouble) for place, name in enumerate(node.output) if name
        }
        unknown = [(name, axis) for name, kind in made.items() for axis, size in enumerate(kind[1]) if size is None]
        if unknown:
            raise UnknownSize(self._unknown(node, unknown[0][0], "it depends on data"), unknown)
        for place, name in enumerate(node.output):
            if name:
                self.types[name] = cast(Type, made[name])
                if name not in self.declared:
                    self.loose.settle(name, self.types[name], always.get(place))
                self.makers[name] = node
                self._know_empty(name)
        if len(node.output) == 1 and all(
            name in self.constants or node.op_type in ("Shape", "Size") for name in node.input
        ):
            array = fold(node, self.types, self.constants)
            if array is not None:
                self.constants[node.output[0]] = array
        if reached:
            self.loose.contents.update(name for name in node.output if name in self.constants)

    def _always(self, node: onnx.NodeProto) -> Mapping[int, Partial]:
        """The types of the node's outputs, as far as they are the same for all data."""
        if self.loose.unranks(node):
            self.loose.ranks.update(name for name in node.output if name)
            return {}
        types, constants = self.loose.types(self.types), self.loose.constants(node, self.constants)
        return self._types_of(node, types, constants)[0]

    def _know_empty(self, name: str) -> None:
        """Record the content of a tensor without elements, which is always known; hidden shapes rest on that."""
        dtype, shape = self.types[name]
        if 0 in shape and dtype != onnx.TensorProto.STRING:
            self.constants[name] = np.zeros(shape, helper.tensor_dtype_to_np_dtype(dtype))

    def _types_of(self, node: onnx.NodeProto, types: Types, constants: Constants) -> tuple[Mapping[int, Partial], str]:
        """A type for each output, unknown dimensions as None, and onnx's error about the node."""
        if node.op_type == "Constant" and (tensor := constant_tensor(node)) is not None:
            self._store(node.output[0], tensor)
            return {0: self.types[node.output[0]]}, ""
        if (branch := taken_branch(node, constants)) is not None and (
            made := self._of_branch(branch, types, constants)
        ):
            return made, ""
        schema, standard = self.onnx.schema_of(node)
        if schema is None and node.op_type in RULES:
            return self._of_rule(node, types, constants)
        if schema is None:
            return self._of_runtime(node, types, constants), ""
        try:
            inferred = self.onnx.outputs_of(schema, standard, types, constants)
        except INFERENCE_ERRORS as error:
            return {}, " ".join(str(error).split())[:200]
        known = inferred.types
        if not known and not inferred.others and not has_subgraph(node):
            if node.op_type in RULES:
                return self._of_rule(node, types, constants)
            known = self._of_runtime(node, types, constants)
        if node.op_type == "Loop":
            known = self._of_loop(node, known, types, constants)
        return known, NO_TENSOR if inferred.others else ""

    def _of_branch(self, branch: onnx.GraphProto, types: Types, constants: Constants) -> dict[int, Partial]:
        """The types that a branch makes, by a walk over it that knows all that is known here; none where some are not
        found so."""
        inner = copy(self)
        inner.types, inner.constants = dict(cast(Mapping[str, Type], types)), dict(constants)
        inner.makers, inner.declared = dict(self.makers), {}
        inner.loose = self.loose.copy()
        try:
            for tensor in branch.initializer:
                inner._store(tensor.name, tensor)
            for node in branch.node:
                inner.visit(node)
        except BadInput:
            return {}
        names = [value.name for value in branch.output]
        return {place: inner.types[name] for place, name in enumerate(names) if name in inner.types}

    def _of_rule(self, node: onnx.NodeProto, types: Types, constants: Constants) -> tuple[dict[int, Partial], str]:
        call = TypedNode(node, cast(Mapping[str, Type], types), constants, self.makers)
        try:
            return {place: kind for place, kind in enumerate(RULES[node.op_type](call)) if kind is not None}, ""
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            return {}, f"{node.op_type} does not have the inputs it should have ({error})"

    def _of_runtime(self, node: onnx.NodeProto, types: Types, constants: Constants) -> dict[int, Partial]:
        """The types that onnxruntime infers, unless the model declares them all."""
        if all(name in self.declared for name in node.output if name):
            return {}
        return ask_runtime(node, types, constants, self.onnx.imports, self.onnx.ir_version)

    def _of_loop(
        self, node: onnx.NodeProto, found: Mapping[int, Partial], types: Types, constants: Constants
    ) -> dict[int, Partial]:
        """A carried value of a Loop keeps its type if one round leaves it so; a stacked output has a row for each
        round."""
        carried = max(0, len(node.input) - 2)
        if rounds := self._rounds(node, types):
            kept = {place: kind for place, kind in enumerate(rounds) if kind is not None}
            found = {p: kind if p < carried else (kind[0], (None, *kind[1])) for p, kind in kept.items()}
        count = trips(node, constants)
        return {
            place: (dtype, (count, *sizes[1:])) if place >= carried and sizes else (dtype, sizes)
            for place, (dtype, sizes) in found.items()
        }

    def _rounds(self, node: onnx.NodeProto, types: Types) -> list[Partial | None]:
        """The types after every round of a Loop; the sizes of carried values that a round changes are unknown."""
        carries = [types.get(name) for name in node.input[2:]]
        for _ in range(LOOP_ROUNDS):
            body = body_as_begun(node, types, carries, captures(node))
            made = self.onnx.outputs_of_graph(body) if body else {}
            if not body or not made:
                return []
            rounds = [partial_type(made[value.name]) for value in body.output[1:]]
            same = [_common(was, now) for was, now in zip(carries, rounds, strict=False)]
            if same == carries:
                return rounds
            carries = same
        return []

    def _settle(self, node: onnx.NodeProto, name: str, found: Partial | None, trouble: str) -> Partial:
        """Complete the type from the model's declarations, then from the user's; refuse a value that is no tensor."""
        declared = self.declared.get(name)
        if found is None:
            found = declared or self._of_other_ranks(node, name)
        if found is None:
            no_rule = NO_RANK if has_subgraph(node) else NO_RULE
            why = self._unknown(node, name, trouble or no_rule)
            raise BadInput(why if trouble == NO_TENSOR else f"{why}; give it a static shape in the model's value_info")
        dtype, sizes = found
        if dtype not in TYPES:
            raise BadInput(
                self._unknown(node, name, f"there is no type {dtype}") + "; give it a type in the model's value_info"
            )
        if declared and len(declared[1]) == len(sizes):
            sizes = tuple(d if s is None else s for s, d in zip(sizes, declared[1]))
        if None not in sizes:
            return dtype, sizes
        keys = [f"{name}:{axis}" if size is None else "" for axis, size in enumerate(sizes)]
        self.used.update(key for key in keys if key in self.stated)
        return dtype, tuple(self.stated.get(key, size) for key, size in zip(keys, sizes, strict=True))

    def _of_other_ranks(self, node: onnx.NodeProto, name: str) -> Partial | None:
        """The type of what the branches of an If make in several ranks, or where one does not go with these sizes: that
        whose sizes are stated."""
        place = list(node.output).index(name)
        made = [self._of_branch(branch, self.types, self.constants).get(place) for branch in branches_of(node)]
        kinds = {kind[0] for kind in made if kind is not None}
        if len(kinds) != 1:
            return None
        rank = next(axis for axis in count() if f"{name}:{axis}" not in self.stated)
        if not rank:
            raise UnknownSize(self._unknown(node, name, NO_RANK), [(name, EVERY_AXIS)])
        self.loose.ranks.add(name)
        return kinds.pop(), (None,) * rank

    def _unknown(self, node: onnx.NodeProto, name: str, why: str) -> str:
        domain = f"{node.domain}." if node.domain else ""
        made = f"{self.path}: the size of value {name!r}, made by {domain}{node.op_type} {node.name!r}"
        return f"{made}, is not known: {why}"


NO_TENSOR = (
    "it is a sequence or optional, and remat schedules tensors only: export with Split, Concat or Identity instead"
)
NO_RANK = "what its subgraphs make is not of one rank"
NO_RULE = "neither onnx, onnxruntime nor remat has a shape rule for this op"
EVERY_AXIS = -1  # of a value whose rank depends on data
LOOP_ROUNDS = 8  # rounds of a Loop until the types that it carries no longer change


def _common(one: Partial | None, other: Partial | None) -> Partial | None:
    """The part that two types have in common; None if their ranks differ."""
    if one is None or other is None or one[0] != other[0] or len(one[1]) != len(other[1]):
        return None
    return one[0], tuple(a if a == b else None for a, b in zip(one[1], other[1], strict=True))
