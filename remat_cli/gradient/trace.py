"""Puts the forward graph on a tape: every shape static, constants folded, each op ready to be differentiated.

Invariant: values keep the model's names unless another value has the name already. Nodes that compute constants, pass
their input on, or do not lead to the loss leave no trace. A node is held to its op's schema before it is read; those of
a branch when it is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import checker, defs, numpy_helper

from remat_cli.errors import BadInput
from remat_cli.gradient import unrolled
from remat_cli.gradient.autocast import Autocast
from remat_cli.gradient.fold import fold
from remat_cli.gradient.lowering import LOWERED
from remat_cli.gradient.refusals import Refusal, hides_a_gradient, is_defined, kind_of, refuse
from remat_cli.gradient.rules import RULES
from remat_cli.gradient.tape import Tape, Taped
from remat_cli.gradient.tensor import Tensor
from remat_cli.gradient.upgrade import modernize
from remat_cli.onnx_graph.attributes import attribute, attributes
from remat_cli.onnx_graph.sequences import WRITERS, CannotWriteOut, SequenceWriter
from remat_cli.onnx_graph.walk import has_subgraph, subgraphs

STATISTICS = 3  # outputs of a BatchNormalization that trains, from opset 14 on


@dataclass(slots=True)
class Tracer:
    """Maps each name of the model to its value on the tape, and knows which values depend on a parameter.

    `sample_variance`: whether running variances are of samples, as PyTorch's are, or of populations. `statistics`: the
    updated value of each running statistic. `lost`: the model's names of unknown values: results of refused nodes, and
    what depends on them.
    """

    tape: Tape
    known: dict[str, Tensor]
    active: set[str]
    freeze_bn: bool
    autocast: Autocast | None = None
    sequences: SequenceWriter = field(init=False)
    sample_variance: bool = False
    statistics: dict[str, Tensor] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    refusals: list[Refusal] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sequences = SequenceWriter(self)

    def trace(self, node: onnx.NodeProto, opset: int) -> None:
        """One node of the model."""
        if not is_defined(node, opset):
            self._lose(node, True)
            return
        if self.lost.intersection(node.input):
            done = kind_of(node) in RULES or kind_of(node) in LOWERED or node.op_type in WRITERS
            self._lose(node, not done and hides_a_gradient(node, opset))
            return
        check_node(node, {"": opset, "ai.onnx": opset})
        before, node = modernize(node, opset)
        for constant in before:
            self.trace(constant, self.tape.opset)
        if self.sequences.takes(node):
            self._write_out(node)
            return
        if node.op_type == "If" and self.known[node.input[0]].name in self.tape.constants:
            self._choose(node, opset)
            return
        if has_subgraph(node):
            if node.op_type != "Loop" or not unrolled.write_out(self, node, opset):
                self._lose(node, True)
            return
        here = self._renamed(node)
        if (arrays := fold(self.tape, here)) is not None:
            for name, array in zip(filter(None, node.output), arrays):
                kept = self.autocast.widened(array) if self.autocast else array
                self.known[name] = self.tape.store(self.tape.fresh(name), kept)
            return
        self._place(node, here)

    def _write_out(self, node: onnx.NodeProto) -> None:
        """Replace a node that makes or reads a sequence by nodes on tensors."""
        try:
            for part in self.sequences.write(node):
                self.trace(part, self.tape.opset)
        except CannotWriteOut as reason:
            raise BadInput(f"{node.op_type} node '{node.name}': {reason}, so it has no gradient") from reason

    # -- known facts for replacing sequences -----------------------------------------------------------------------
    def shape_of(self, name: str) -> tuple[int, ...]:
        return self._read(name).shape

    def constant_of(self, name: str) -> np.ndarray | None:
        return self.tape.constants.get(self._read(name).name)

    def store(self, name: str, content: np.ndarray) -> str:
        stored = self.new_name(name)
        self.known[stored] = self.tape.integers(content)
        return stored

    def alias(self, name: str) -> str:
        other = self.new_name(f"{name}/part")
        self.known[other] = self._read(name)
        return other

    def new_name(self, stem: str) -> str:
        return self.tape.fresh(stem)

    def _read(self, name: str) -> Tensor:
        if name not in self.known:
            raise BadInput(f"the model reads '{name}', which nothing produces")
        return self.known[name]

    def _lose(self, node: onnx.NodeProto, refused: bool) -> None:
        """Mark the outputs as unknown, so that the walk goes on and all refusals are reported together."""
        self.lost.update(name for name in node.output if name)
        if refused:
            self.refusals.append(Refusal(kind_of(node), node.name))

    def finish(self) -> None:
        """Refuse the model if anything of it could not be traced; ops without a rule are listed too."""
        if self.refusals:
            active = [step for step in self.tape.steps if any(x and x.name in self.active for x in step.inputs)]
            refuse([*self.refusals, *(Refusal(step.kind, step.name) for step in active if step.kind not in RULES)])

    def _choose(self, node: onnx.NodeProto, opset: int) -> None:
        """Replace an If whose condition is known by its branch."""
        holds = bool(self.tape.constants[self.known[node.input[0]].name].reshape(()))
        branch = attribute(node, "then_branch" if holds else "else_branch")
        for stored in branch.initializer:
            self.known[stored.name] = self.tape.store(self.tape.fresh(stored.name), numpy_helper.to_array(stored))
        for part in branch.node:
            self.trace(part, opset)
        for name, made in zip(node.output, branch.output):
            if made.name in self.lost:
                self.lost.add(name)
            else:
                self.known[name] = self.known[made.name]

    def _renamed(self, node: onnx.NodeProto) -> onnx.NodeProto:
        """The node with the tape's names, its outputs under names that are free."""
        missing = [name for name in node.input if name and name not in self.known]
        if missing:
            raise BadInput(f"{node.op_type} node '{node.name}' reads '{missing[0]}', which nothing produces")
        here = deepcopy(node)
        here.domain = "" if node.domain == "ai.onnx" else node.domain
        here.name = self.tape.fresh_node(node.name or f"{node.op_type}_{len(self.tape.nodes)}")
        here.input[:] = [self.known[name].name if name else "" for name in node.input]
        return here

    def _place(self, node: onnx.NodeProto, here: onnx.NodeProto) -> None:
        back = self._cast(here)
        step = self._step(here)
        if not defs.has(here.op_type, self.tape.opset, here.domain):
            self._lose(node, True)
            return
        active = any(name in self.active for name in here.input)
        with self.tape.scope(here.name):
            lowered = LOWERED[step.kind](self, step, active) if step.kind in LOWERED else None
        if lowered is not None:
            found = list(lowered)
        elif active and step.kind not in RULES and (body := _function(self.tape, here)) is not None:
            found = self._inline(here, body)
        else:
            found = self._append(node, here, step)
        if self.autocast:
            self.autocast.give_back(here, found, back)
        for name, tensor in zip(node.output, found):
            if name and tensor is not None:
                self.known[name] = tensor
                if active:
                    self.active.add(tensor.name)

    def _cast(self, here: onnx.NodeProto) -> int | None:
        """Cast the inputs to the type that the node computes in; the result is the type that its first output is cast
        to, if any."""
        if self.autocast is None:
            return None
        before = list(here.input)
        back = self.autocast.fit(here)
        self.active.update(name for name, old in zip(here.input, before) if old in self.active)
        return back

    def _step(self, here: onnx.NodeProto) -> Taped:
        inputs = tuple(Tensor(self.tape, name) if name else None for name in here.input)
        kind = f"{here.domain}.{here.op_type}" if here.domain else here.op_type
        return Taped(kind, here.name, inputs, (), attributes(here), here, self.tape)

    def _append(self, node: onnx.NodeProto, here: onnx.NodeProto, step: Taped) -> list[Tensor | None]:
        here.output[:] = [self.tape.fresh(name) if name else "" for name in node.output]
        self.tape.append(here)
        self.tape.remember(here, step.attributes)
        step.outputs = tuple(Tensor(self.tape, name) if name else None for name in here.output)
        self.tape.note(step)
        return list(step.outputs)

    def _inline(self, here: onnx.NodeProto, body: onnx.FunctionProto) -> list[Tensor | None]:
        """Replace an op by the simpler ones that ONNX defines it by."""
        inner = Tracer(self.tape, {}, self.active, self.freeze_bn, self.autocast)
        for name, given in zip(body.input, here.input):
            if given:
                inner.known[name] = Tensor(self.tape, given)
        formal = defs.get_schema(here.op_type, self.tape.opset, here.domain).attributes
        attributes = {name: given.default_value for name, given in formal.items() if given.default_value.type}
        attributes |= {a.name: a for a in [*body.attribute_proto, *here.attribute]}
        opset = next(entry.version for entry in body.opset_import if not entry.domain)
        for index, node in enumerate(body.node):
            part = _specialize(node, attributes)
            part.name = f"{here.name}/{node.name or f'{node.op_type}_{index}'}"
            part.input[:] = [name if name in inner.known else "" for name in part.input]
            inner.trace(part, opset)
        return [inner.known.get(name) for name in body.output]


def _specialize(node: onnx.NodeProto, given: dict[str, Any]) -> onnx.NodeProto:
    """A function's node with the caller's attributes filled in."""
    part = deepcopy(node)
    del part.attribute[:]
    for entry in node.attribute:
        if not entry.ref_attr_name:
            part.attribute.append(entry)
        elif entry.ref_attr_name in given:
            part.attribute.append(given[entry.ref_attr_name])
            part.attribute[-1].name = entry.name
    return part


def _function(tape: Tape, node: onnx.NodeProto) -> onnx.FunctionProto | None:
    """ONNX's own definition of the op by other ops, if it has one."""
    if node.domain or not defs.has(node.op_type, tape.opset, ""):
        return None
    schema = defs.get_schema(node.op_type, tape.opset, "")
    if schema.has_context_dependent_function:
        types = [tape.types[name].SerializeToString() if name else b"" for name in node.input]
        made = schema.get_context_dependent_function_with_opset_version(tape.opset, node.SerializeToString(), types)
        return onnx.FunctionProto.FromString(made) if made else None
    if not schema.has_function:
        return None
    made = schema.get_function_with_opset_version(tape.opset)
    return onnx.FunctionProto.FromString(made) if made else schema.function_body


def check_node(node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
    """`opsets`: the version of each domain."""
    version = opsets.get(node.domain, 1)
    if (
        not defs.has(node.op_type, version, node.domain)
        or defs.get_schema(node.op_type, version, node.domain).deprecated
    ):
        return  # there is no schema; whether the op can be differentiated is decided later
    context = checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {**opsets, node.domain: version}
    try:
        checker.check_node(_without_branches(node), context)
    except checker.ValidationError as error:
        reason = " ".join(str(error).split("==>")[0].split())
        what = f"{node.op_type} node '{node.name}' is not as ONNX defines the op: {reason}"
        raise BadInput(what + _advice(node)) from error


def _advice(node: onnx.NodeProto) -> str:
    """What helps, where an exporter is known to write such a node."""
    if node.op_type == "BatchNormalization" and len(node.output) > STATISTICS:
        return (
            " PyTorch's tracing exporter writes so what InstanceNorm's running statistics are of: "
            "export with torch.onnx.export(..., dynamo=True, optimize=False)"
        )
    return ""


def _without_branches(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node without its branches, because the checker would look in them for what is defined outside."""
    if not has_subgraph(node):
        return node
    bare = deepcopy(node)
    for branch in subgraphs(bare):
        branch.Clear()
        branch.name = "branch"
    return bare
