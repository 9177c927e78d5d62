"""Writing an ONNX graph by hand: named nodes, named weights, shapes known all along.

Invariant: every node's first output bears the node's own name, every shape is known, and weights stay descriptions
(shape and distribution) until the model is finished, so that no bytes exist for weights that become inputs. With a free
batch no node has its size in it: only the data and the logits name it, as their first dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper, shape_inference

from remat_cli.errors import Usage

Shape = tuple[int, ...]

LARGEST_RANDOM = 1 << 28  # bytes of weights that `auto` still writes into the file
LARGEST_FILE = (1 << 31) - (1 << 26)  # protobuf's limit, less room for everything but the weights
PARAMETERS = "remat.parameters"  # metadata: which of the model's inputs are weights
BATCH = "batch"  # what a free batch is called
CLASS_AXIS = "remat.class_axis"  # metadata: where the logits have their classes, if not on axis 1


@dataclass(frozen=True, slots=True)
class Weight:
    """`std` is None for weights that start as `fill` everywhere; buffers (running statistics) are never trained."""

    shape: Shape
    std: float | None
    fill: float
    buffer: bool

    def draw(self, random: np.random.Generator) -> np.ndarray:
        if self.std is None:
            return np.full(self.shape, self.fill, np.float32)
        return random.standard_normal(self.shape, np.float32) * np.float32(self.std)


@dataclass(slots=True)
class Builder:
    """A graph in the making."""

    opset: int = 20
    training: bool = True
    dropout_ratio: float = 0.0
    seed: int = 0
    free_batch: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    known: dict[str, TensorProto] = field(
        default_factory=dict
    )  # what constants hold, and shapes that are made of the batch
    weights: dict[str, Weight] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)  # name -> element type
    class_axis: int | None = None  # of the logits, if it is not where ONNX's own loss has it
    statistics: list[str] = field(default_factory=list)  # BatchNormalization's updated ones, which are outputs too

    def input(self, name: str, shape: Shape, dtype: int = TensorProto.FLOAT) -> str:
        if min(shape) < 1:
            raise Usage(f"{name} would have the shape {list(shape)}: every size must be at least 1")
        self.inputs[name] = dtype
        return self._tell(name, shape, dtype)

    def tokens(self, shape: Shape) -> str:
        """Numbers of words."""
        return self.input("input", shape, TensorProto.INT64)

    def weight(self, name: str, shape: Shape, std: float | None = None, fill: float = 0.0, buffer: bool = False) -> str:
        self.weights[name] = Weight(shape, std, fill, buffer)
        return self._tell(name, shape)

    def constant(self, name: str, value: np.ndarray | float | Sequence[int]) -> str:
        """A Constant node: unlike an initializer, nobody mistakes it for a weight."""
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        self.known[name] = numpy_helper.from_array(array, name)
        return self.op("Constant", [], name, value=self.known[name])

    def op(self, op_type: str, inputs: Sequence[str], name: str, **attributes: object) -> str:
        """A node with one output."""
        return self.node(op_type, inputs, [name], **attributes)[0]

    def node(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: object) -> Sequence[str]:
        """A node whose outputs have the shapes that ONNX infers."""
        given = {key: value for key, value in attributes.items() if value is not None}
        node = helper.make_node(op_type, list(inputs), list(outputs), name=outputs[0], **given)
        schema, imports = defs.get_schema(op_type, self.opset, ""), [helper.make_opsetid("", self.opset)]
        types = {name: self.types[name] for name in inputs if name}
        known = {name: self.known[name] for name in inputs if name in self.known}
        found = shape_inference.infer_node_outputs(schema, node, types, known, opset_imports=imports)
        for output in outputs:
            assert output not in self.types, f"two values are called {output}"
            kind = found[output].tensor_type
            shape = tuple(dim.dim_value for dim in kind.shape.dim)
            if any(size < 1 for size in shape):
                words = f"nothing is left at {node.name}: its output would have the shape {list(shape)}"
                raise Usage(f"{words}; ask for larger data")
            self._tell(output, shape, kind.elem_type)
        self.nodes.append(node)
        return outputs

    def _tell(self, name: str, shape: Shape, dtype: int = TensorProto.FLOAT) -> str:
        self.shapes[name], self.types[name] = shape, helper.make_tensor_type_proto(dtype, shape)
        return name

    def finish(self, name: str, output: str, weights: str) -> onnx.ModelProto:
        """The model, `output` renamed to logits, every value's shape found by ONNX's own inference."""
        self._rename(output, "logits")
        outputs = ["logits", *self.statistics]
        graph = helper.make_graph(
            self.nodes,
            name,
            [self._info(value, self.shown(value), dtype) for value, dtype in self.inputs.items()]
            + [self._info(value, weight.shape) for value, weight in self.weights.items()],
            [self._info(value, self.shown(value) if value == "logits" else self.shapes[value]) for value in outputs],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], producer_name="remat")
        model.ir_version = min(model.ir_version, 10)
        model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        as_inputs = self._kept_as_inputs(weights)
        self._store_weights(model, as_inputs)
        props = {PARAMETERS: " ".join(as_inputs)} if as_inputs else {}
        if self.class_axis is not None:
            props[CLASS_AXIS] = str(self.class_axis)
        helper.set_model_props(model, props)
        return model

    def count_parameters(self) -> int:
        return sum(math.prod(weight.shape) for weight in self.weights.values() if not weight.buffer)

    def _kept_as_inputs(self, weights: str) -> list[str]:
        needed = 4 * self.count_parameters()
        if weights == "random" and needed > LARGEST_FILE:
            raise Usage(f"{needed / 1e9:.1f} GB of weights do not fit in one ONNX file; use --weights inputs")
        if weights == "random" or (weights == "auto" and needed <= LARGEST_RANDOM):
            return []
        return [name for name, weight in self.weights.items() if not weight.buffer]

    def _store_weights(self, model: onnx.ModelProto, as_inputs: Sequence[str]) -> None:
        random = np.random.default_rng(self.seed)
        kept = [info for info in model.graph.input if info.name in self.inputs or info.name in set(as_inputs)]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        for name, weight in self.weights.items():
            if name not in as_inputs:
                model.graph.initializer.append(numpy_helper.from_array(weight.draw(random), name))

    def _rename(self, old: str, new: str) -> None:
        self.shapes[new] = self.shapes.pop(old)
        for node in self.nodes:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]

    def shown(self, name: str) -> list[int | str]:
        """The shape of data, or of the logits, as the model declares it."""
        shape: list[int | str] = list(self.shapes[name])
        return [BATCH, *shape[1:]] if self.free_batch else shape

    def _info(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, dtype, shape)
