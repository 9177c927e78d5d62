"""Outputs that take the place of inputs: which may, which do without being asked, and why others cannot.

Whoever runs such a graph finds the arrays that they gave for these inputs changed. So without being asked, only the
steps that `grad` made do so.

A runtime writes an output straight into the buffer that it is given for it. Where that buffer is an input's own, the
input is gone once the op that makes the output begins. So no later op may read it, and the op itself may read it only
element by element.

Invariant: each output in the answer of `updates_of` has an input of its own, of its type and shape. No op that stands
after the output's op in the file reads that input. Where the file has such ops later, `hold_back` finds a better order
of the same ops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx

from remat_cli.errors import BadInput, Usage
from remat_cli.model import semantics
from remat_cli.model.graph import Graph, Op
from remat_cli.model.step_parts import FINITE, parts_of
from remat_cli.onnx_graph.walk import by_rank, edges

# output -> the input in whose place it comes; True: also those that are found by name; None: only those of `grad`
InPlace = Mapping[str, str] | bool | None
AUTO = "auto"  # on the command line: those that are found
NARROW = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}  # a CPU has almost no kernels for these
NEW = "_new"  # the suffix of a training step's output that replaces a value


def parse_pairs(pairs: tuple[str, ...]) -> dict[str, str] | bool:
    """NAME=NAME_new, as on the command line, outputs first in the answer; True where they are to be found."""
    if set(pairs) == {AUTO}:
        return True
    found: dict[str, str] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not (old and equals and new):
            raise Usage(
                f"--in-place {pair}: name an input and the output in its place, as in weight=weight_new; or write"
                f" --in-place={AUTO} alone, and remat finds them"
            )
        if new in found:
            raise Usage(f"--in-place names the output '{new}' twice")
        found[new] = old
    return found


def updates_of(graph: Graph, asked: InPlace, written_out: bool = False) -> dict[str, str]:
    """The outputs that come in the places of inputs, each with its input; what was asked for and is not safe, refused.

    `written_out`: the runtime itself wrote the graph, with all that it adds to others.
    """
    return divide_updates(graph, asked, None if written_out else narrow(graph))[0]


def divide_updates(graph: Graph, asked: InPlace, never: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The outputs that come in the places of inputs, each with its input; and those that usually would, each with the
    reason why not. What was asked for and is not safe is refused.

    `never`: why none may, if so.
    """
    given = wanted_updates(graph, asked)
    look, found, left = _Look(graph), dict[str, str](), dict[str, str]()
    for output, old in given.items():
        why = never or look.why_not(output, old)
        if why is None and old in found.values():
            taken = next(name for name, one in found.items() if one == old)
            why = f"'{taken}' takes the place of '{old}' already"
        if why is None:
            found[output] = old
        elif isinstance(asked, Mapping):
            named = old in graph.weights or (old in graph.inputs and output in graph.outputs)
            raise (BadInput if named else Usage)(f"--in-place {old}={output}: {why}")
        else:
            left[output] = why
    return found, left


def wanted_updates(graph: Graph, asked: InPlace) -> Mapping[str, str]:
    """The pairs that are asked for, safe or not."""
    if isinstance(asked, Mapping):
        return asked
    return named_alike(graph) if asked and parts_of(graph.model) is None else _recorded(graph)


def _recorded(graph: Graph) -> dict[str, str]:
    """The pairs of a step that `grad` made."""
    parts = parts_of(graph.model)
    if parts is None:
        return {}
    updated = () if _may_be_discarded(graph) else (*parts.parameters, *parts.state)
    names = (*updated, *parts.statistics, *parts.sums)
    return {f"{name}{NEW}": name for name in names if f"{name}{NEW}" in graph.outputs}


def named_alike(graph: Graph) -> dict[str, str]:
    """Outputs that have the names of inputs in theirs, and are made of them element by element."""
    inputs = sorted(graph.inputs, key=lambda name: (-len(name), name))
    look = _Look(graph)
    found: dict[str, str] = {}
    for output in sorted(graph.outputs, key=lambda name: (len(name), name)):
        named = next((old for old in inputs if old in output and old != output), None)
        if named is not None and named not in found.values() and look.made_of(output, named):
            found[output] = named
    return found


def narrow(graph: Graph) -> str | None:
    """Why a session on a CPU does not keep the order of the graph's ops, where it has ops of its own to add."""
    if NARROW.isdisjoint(value.dtype for value in graph.values.values()):
        return None
    for op in graph.ops:
        kinds = {graph.values[name].dtype for name in (*op.reads, *op.writes) if name in graph.values}
        if kinds & NARROW and op.op_type != "Cast":
            return (
                f"onnxruntime puts Casts around op '{op.name}' ({op.op_type}), so that another order than the plan's "
                "may run; solve with --optimize disabled, which writes them out"
            )
    return None


def _may_be_discarded(graph: Graph) -> bool:
    """Whether it is for the caller to look at `finite` and leave the update out, as with steps of earlier versions."""
    heeding = any(FINITE in op.inputs and op.op_type == "Where" for op in graph.ops)
    return FINITE in graph.outputs and not heeding


def readers_of(graph: Graph) -> dict[str, list[int]]:
    """The ops that read each input, directly or through views."""
    return _readers_behind(graph, _bases(graph))


def _readers_behind(graph: Graph, behind: Mapping[str, set[str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, op in enumerate(graph.ops):
        for name in set().union(*(behind.get(read, set()) for read in op.reads)):
            found.setdefault(name, []).append(index)
    return found


def _bases(graph: Graph) -> dict[str, set[str]]:
    """The input in whose memory a value lies."""
    behind = {name: {name} for name in graph.inputs}
    for op in graph.ops:
        for out, into in semantics.views(op):
            if op.outputs[out] and op.inputs[into] in behind:
                behind[op.outputs[out]] = behind[op.inputs[into]]
    return behind


class _Look:
    """Examines the relation between an output and an input."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.place = {name: index for index, op in enumerate(graph.ops) for name in op.writes}
        self.behind = _bases(graph)
        self.readers = _readers_behind(graph, self.behind)

    def why_not(self, output: str, old: str) -> str | None:
        """Why the output cannot come in the place of the input; None if it can."""
        graph = self.graph
        if old in graph.weights:
            return f"'{old}' is stored in the file, and the session holds it; make it an input without a stored value"
        if old not in graph.inputs:
            return f"the model has no input '{old}'"
        if output not in graph.outputs or output not in self.place:
            return f"the model has no output '{output}' that one of its ops makes"
        one, other = graph.values[old], graph.values[output]
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return (
                f"'{output}' is {list(other.shape)}, and '{old}' {list(one.shape)}: they must be of one shape and type"
            )
        if one.dtype == onnx.TensorProto.STRING:
            return "strings lie elsewhere"
        if {old, output} & graph.loose:
            return "other data may make them of other sizes"
        op = graph.ops[self.place[output]]
        if (
            self.behind.get(output, {output}) - {output}
            and op.op_type != "Identity"
            and not self._named(op, output, old)
        ):
            return f"'{output}' is a view of an input"
        later = [graph.ops[index] for index in self.readers.get(old, ()) if index > self.place[output]]
        if later:
            return f"op '{later[0].name}' reads '{old}' and comes after op '{op.name}', which makes '{output}'"
        if self.place[output] in self.readers.get(old, ()) and not self._named(op, output, old):
            return f"op '{op.name}' ({op.op_type}) reads '{old}' itself, and not element by element"
        return None

    def _named(self, op: Op, output: str, old: str) -> bool:
        """Whether the op reads the input only where it makes each element of the output of that very element."""
        places = semantics.elementwise(op, self.graph.values[output].shape, self._shape)
        reads = [into for into, name in enumerate(op.inputs) if old in self.behind.get(name, ())]
        out = op.outputs.index(output)
        return old not in op.captures and all(op.inputs[into] == old and (out, into) in places for into in reads)

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.graph.values[name].shape

    def made_of(self, output: str, old: str) -> bool:
        """Whether a chain of ops that work element by element leads from the input to the output."""
        waiting, seen = [output], set[str]()
        while waiting:
            name = waiting.pop()
            if name == old:
                return True
            if name in seen or name not in self.place:
                continue
            seen.add(name)
            op = self.graph.ops[self.place[name]]
            places = semantics.elementwise(op, self.graph.values[name].shape, self._shape)
            waiting += [op.inputs[into] for out, into in places if op.outputs[out] == name]
        return False


def hold_back(graph: Graph, asked: InPlace) -> Graph:
    """The graph with each update after what reads the old value, where that is possible; all else as in the file."""
    waits = _waits(graph, wanted_updates(graph, asked))
    if all(reader < index for index, readers in waits.items() for reader in readers):
        return graph
    return replace(graph, ops=tuple(graph.ops[index] for index in _order(graph, waits)))


def _waits(graph: Graph, pairs: Mapping[str, str]) -> dict[int, set[int]]:
    """For each op that updates inputs, the others that read them."""
    place = {name: index for index, op in enumerate(graph.ops) for name in op.writes}
    readers, found = readers_of(graph), dict[int, set[int]]()
    for output, old in pairs.items():
        if output in place:
            found.setdefault(place[output], set()).update(readers.get(old, ()))
    return {index: others - {index} for index, others in found.items()}


def _order(graph: Graph, waits: Mapping[int, set[int]]) -> list[int]:
    """Of the ops that could run, the first in the file. Where updates wait for each other, the first waits no more."""
    reads = edges([op.reads for op in graph.ops], [op.writes for op in graph.ops])
    left, alike = dict(waits), [0] * len(reads)
    while len(order := by_rank([{*one, *left.get(k, ())} for k, one in enumerate(reads)], alike)) < len(reads):
        ran = set(order)
        del left[next(k for k, sources in enumerate(reads) if k not in ran and ran.issuperset(sources))]
    return order
