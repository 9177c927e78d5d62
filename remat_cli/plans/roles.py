"""The role of each tensor in a training graph: a parameter, its gradient, an optimizer's state, data and so on.

The roles are read from what the graph computes. A result of the backward pass with a parameter's shape is its gradient.
If it is computed from the parameter element by element, it is its update. Where several tensors have one shape, names
decide which belong together; without telling names, order does.

Invariant: every input, weight and value of the graph has exactly one role.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum

from remat_cli.gradient.parameters import PARAMETERS
from remat_cli.ingest.phases import FLOATS, find_loss
from remat_cli.model import semantics
from remat_cli.model.graph import Graph, Op
from remat_cli.model.kernel_kinds import kind_of
from remat_cli.onnx_graph.attributes import said_in, spelled
from solvers.problem import Kind


class Role(Enum):
    """The roles in the order in which they are shown: what stays for the whole step comes first."""

    PARAMETERS = "parameters"
    STATE = "optimizer state"
    INPUTS = "inputs"
    CONSTANTS = "constants"  # all else that is in memory without being trained: masks, running statistics
    FIXED = "inputs and weights"  # of a bare problem, which does not tell them apart
    GRADIENTS = "gradients"  # of parameters
    ACTIVATIONS = "activations"  # what the forward pass computes, the first time or again
    TEMPORARIES = "temporaries"  # what the backward pass computes on its way to the gradients
    WORKSPACE = "workspace"

    @property
    def key(self) -> str:
        """The role's name in JSON."""
        return self.value.replace(" ", "_")


Places = Mapping[str, tuple[int, ...]]  # of inputs, by type of op

ACCUMULATORS = {"GradientAccumulator", "InPlaceAccumulator", "InPlaceAccumulatorV2"}  # (buffer, gradient, ...)
MOVES = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
SUMS = MOVES | {"Add", "Sum"}
STATISTICS: Places = dict.fromkeys(("BatchNormalization", "BatchNormInternal"), (3, 4))
DATA: Places = dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul"), (0,))
WEIGHTS: Places = {
    **dict.fromkeys(("Conv", "ConvTranspose", "FusedConv", "Gemm"), (1, 2)),
    **dict.fromkeys(("BatchNormInternal", "BatchNormalization", "GroupNormalization"), (1, 2)),
    **dict.fromkeys(("InstanceNormalization", "LayerNormalization", "SimplifiedLayerNormalization"), (1, 2)),
    **dict.fromkeys(("FusedMatMul", "MatMul", "PRelu", "RMSNormalization"), (1,)),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (1, 2, 3)),
    "Gather": (0,),
}
GRADIENT = re.compile(r"(?<![a-z0-9])(?:grads?|gradients?)(?![a-z0-9])", re.IGNORECASE)
UPDATED = re.compile(r"[._/](?:new|next|updated)$", re.IGNORECASE)


def roles_of(graph: Graph) -> dict[str, Role]:
    """The role of every input, weight and value, by name."""
    return _Reading(graph).roles()


class _Reading:
    """What the graph says about its tensors."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.resident = tuple(dict.fromkeys((*graph.inputs, *graph.weights)))
        self.fed = {value.name for value in graph.model.graph.input}
        self.writer = {name: op for op in graph.ops for name in op.writes}
        self.read_forward = {name for op in graph.ops if not op.backward for name in op.reads}
        self.trained: dict[str, str] = {}  # parameter -> its gradient
        self.updated: dict[str, str] = {}  # input or weight -> what it is after the step
        self._pair()
        moved = {name for name in self.updated if name in self.read_forward and self._is_late(self.updated[name])}
        self.parameters = moved.union(self.trained)
        self.state = self._state()

    def roles(self) -> dict[str, Role]:
        frozen = self._frozen()
        statistics = {*self.updated, *self._read_at(STATISTICS)}
        found = {name: self._fixed(name, frozen, statistics) for name in self.resident}
        for op in self.graph.ops:
            found.update(dict.fromkeys(op.writes, Role.TEMPORARIES if op.backward else Role.ACTIVATIONS))
        found.update((copy, found[first]) for copy, first in self._made_again())
        found.update((after, found[before]) for before, after in self.updated.items())
        found.update(dict.fromkeys(self._for_constants(found), Role.ACTIVATIONS))
        found.update(dict.fromkeys(self._gradients(), Role.GRADIENTS))
        return found

    def _fixed(self, name: str, frozen: Collection[str], statistics: Collection[str]) -> Role:
        """The role of an input or weight."""
        if name in self.parameters:
            return Role.PARAMETERS
        if name in self.state:
            return Role.STATE
        if name in statistics:
            return Role.CONSTANTS
        if name in frozen:
            return Role.PARAMETERS
        return Role.INPUTS if name in self.graph.inputs else Role.CONSTANTS

    def _is_late(self, name: str) -> bool:
        return name in self.writer and self.writer[name].backward

    # Which result belongs to which tensor.

    def _pair(self) -> None:
        """Find the gradient or the update of each tensor that has one: by name, by what it is computed from, by
        order."""
        waiting = [name for name in self._results() if not self._named(name) and self._is_late(name)]
        made_of = {name: self._made_of(name) for name in waiting}
        for name in sorted(waiting, key=lambda name: len(made_of[name])):
            own = [source for source in made_of[name] if source not in self.updated]
            if own:
                read = [source for source in own if source in self.read_forward]
                self.updated[(read or own)[0]] = name
        known = set(self.updated.values())
        taken = {*self.trained, *self.updated, *self._read_at(STATISTICS)}
        free = [name for name in self.resident if name in self.read_forward and name not in taken]
        for name in waiting:
            tensor = next((tensor for tensor in free if self._alike(tensor, name)), None)
            if tensor is not None and name not in known:
                free.remove(tensor)
                self.trained[tensor] = name

    def _results(self) -> Iterator[str]:
        """The values that may be a gradient or an updated tensor: float outputs except the loss, and accumulated
        values."""
        graph, loss = self.graph, find_loss(self.graph.outputs, self.graph.values, self.writer)
        yield from (name for name in graph.outputs if name != loss and graph.values[name].dtype in FLOATS)
        yield from (op.inputs[1] for op in graph.ops if op.op_type in ACCUMULATORS)

    def _named(self, name: str) -> bool:
        """Whether the value's name names the tensor that it is the gradient or the update of: `w_grad`, `grad_w`,
        `w_new` ..."""
        for match in GRADIENT.finditer(name.replace("_", ".")):
            for tensor in (name[: match.start()].rstrip("._/@:"), name[match.end() :].lstrip("._/@:")):
                if self._alike(tensor, name):
                    self.trained.setdefault(tensor, name)
                    return True
        tensor, writer = UPDATED.sub("", name), self.writer.get(name)
        late = writer is not None and (writer.backward or writer.op_type in STATISTICS)
        if late and tensor != name and self._alike(tensor, name):
            self.updated.setdefault(tensor, name)
            return True
        return False

    def _alike(self, tensor: str, name: str) -> bool:
        """Whether `tensor` is an input or weight of the same type and shape as `name`."""
        values = self.graph.values
        if tensor not in values or tensor in self.writer:
            return False
        return (values[tensor].shape, values[tensor].dtype) == (values[name].shape, values[name].dtype)

    def _made_of(self, name: str) -> list[str]:
        """The inputs and weights of its shape from which it is computed element by element."""
        return [source for source in self._walk(name) if source in self.fed]

    def _walk(self, name: str, ops: Collection[str] = ()) -> list[str]:
        """Tensors of its shape that it is computed from, itself first, through these ops or all elementwise ones."""
        shape = self.graph.values[name].shape
        seen, stack = {name: None}, [name]
        while stack:
            op = self.writer.get(stack.pop())
            if op is None or not (op.op_type in ops if ops else _on_each_element(op)):
                continue
            fresh = [read for read in op.reads if read not in seen and self.graph.values[read].shape == shape]
            seen.update(dict.fromkeys(fresh))
            stack += fresh
        return list(seen)

    # The roles.

    def _state(self) -> set[str]:
        """Tensors that are updated but are no parameters. Those that the forward pass alone updates, such as running
        statistics, are left out."""
        made = {self.updated[name] for name in self.parameters if name in self.updated}
        needed, caused = set(made), {*made, *self.trained.values()}
        for op in reversed(self.graph.ops):
            if needed.intersection(op.writes):
                needed.update(op.reads)
        for op in self.graph.ops:
            if caused.intersection(op.reads):
                caused.update(op.writes)
        others = {name: after for name, after in self.updated.items() if name not in self.read_forward}
        return {name for name, after in others.items() if name in needed or after in caused}

    def _made_again(self) -> Iterator[tuple[str, str]]:
        """Pairs of values that equal ops compute from equal inputs: a rewritten model recomputes activations."""
        same: dict[str, str] = {}
        seen: dict[object, Op] = {}
        for op in self.graph.ops:
            reads = [same.get(name, name) for name in (*op.inputs, *op.captures)]
            first = seen.setdefault((op.domain, op.op_type, spelled(op.node), tuple(reads)), op)
            if first is not op and not semantics.runs_once(op):
                same.update((copy, one) for copy, one in zip(op.outputs, first.outputs, strict=False) if copy and one)
        return ((copy, first) for copy, first in same.items() if copy not in self.graph.outputs)

    def _for_constants(self, found: Mapping[str, Role]) -> set[str]:
        """Values that only lead to updated running statistics. They belong to the forward pass, though no loss depends
        on them."""
        wanted = {name for name in self.graph.outputs if found[name] is not Role.CONSTANTS}
        rest: set[str] = set()
        for op in reversed(self.graph.ops):
            if wanted.intersection(op.writes) or semantics.runs_once(op):
                wanted.update(op.reads)
            else:
                rest.update(name for name in op.writes if found[name] is Role.TEMPORARIES)
        return rest

    def _frozen(self) -> set[str]:
        """Weights that are not trained; in a model without a backward pass, all float tensors in the file."""
        graph = self.graph
        found = self._read_at(WEIGHTS) - self._read_at(DATA)
        if not any(op.backward for op in graph.ops):
            found.update(graph.weights)
            found.update(said_in(graph.model).get(PARAMETERS, "").split())
        values = [graph.values[name] for name in found if name in graph.values]
        return {value.name for value in values if value.dtype in FLOATS and value.shape}

    def _read_at(self, places: Places) -> set[str]:
        """The tensors that the forward pass's ops read at these places, traced back through ops that only move data."""
        found: set[str] = set()
        for op in self.graph.ops:
            for place in () if op.backward else places.get(op.op_type, ()):
                name = op.inputs[place] if place < len(op.inputs) else ""
                while (moved := self.writer.get(name)) is not None and moved.op_type in MOVES:
                    name = moved.inputs[0]
                found.add(name)
        return found

    def _gradients(self) -> Iterator[str]:
        """Gradients, the terms that they are sums of, and the buffers in which they are accumulated."""
        for name in self.trained.values():
            yield from (part for part in self._walk(name, SUMS) if part in self.writer)
        for name in self.parameters.difference(self.trained):
            yield from self._read_by_update(self.updated[name])
        for op in self.graph.ops:
            if op.op_type in ACCUMULATORS:
                yield op.inputs[0]

    def _read_by_update(self, name: str) -> set[str]:
        """The values at which the elementwise update of a parameter begins, and the terms of their sums: its
        gradient."""
        reached = set(self._walk(name))
        found: set[str] = set()
        for op in {id(op): op for part in reached if (op := self.writer.get(part))}.values():
            if not (_on_each_element(op) and reached.intersection(op.reads)):
                found.update(op.writes)
        return found & reached - {name}


def _on_each_element(op: Op) -> bool:
    return kind_of(op) in (Kind.POINTWISE, Kind.VIEW)
