"""Predicts what a rewritten graph needs in the order of its file, all that rewriting added included.

Invariant: the strict figure is `simulate`'s for the very nodes that were written, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remat_cli.model.graph import Graph, Op
from remat_cli.model.proved import Promise
from remat_cli.onnx_graph.walk import edges, strict_order
from remat_cli.rewrite.copies import EmittedNode
from solvers.placement.chunks import ALIGNMENT
from solvers.plan import lower
from solvers.problem import RESIDENT, Node, Problem
from solvers.simulate import simulate

IN_ARENA_BYTES = 127  # in bytes; larger weights stay outside of a CPU's arena, where the model file's loader put them


class Prediction:
    """The rewritten graph as a problem of its own: one node a step, each run once.

    `constants`: bytes of the initializers that the rewriting added. `launch`: the cost of a node that it added.
    """

    def __init__(
        self,
        graph: Graph,
        problem: Problem,
        steps: Sequence[EmittedNode],
        constants: Sequence[int] = (),
        launch: int = 0,
    ) -> None:
        self.launch = launch
        self.fuses = bool(problem.inner)  # its session fuses some of its ops into other kernels
        self.names = [name for step in steps for name in step.node.output if name]
        self.number = {name: index for index, name in enumerate(self.names)}
        self.origin = origin = {name: value for step in steps for name, value in step.origin.items()}
        self.values = values_of(graph)
        tensors = [graph.values[origin[name]] if name in origin else None for name in self.names]
        self.shapes = [(t.shape, t.bytes) if t else None for t in tensors]
        added = {name: step.bytes for step in steps for name in step.node.output}
        index_of = {op.name: index for index, op in enumerate(graph.ops)}
        self.unknown = {self.number[name] for step in steps if step.hides for name in step.node.output}
        nodes = [self._node(step, problem.nodes[index_of[step.op.name]] if step.op else None) for step in steps]
        sizes = (
            (0 if origin[name] in graph.in_place else t.bytes) if t else added.get(name, 0)
            for name, t in zip(self.names, tensors, strict=True)
        )
        outputs = tuple(self.number[name] for name in graph.outputs if name in self.number)
        fixed = problem.resident + sum(constants)
        self.problem = Problem(tuple(nodes), tuple(sizes), outputs, resident=fixed, unread_stay=True)
        stored = (*constants, *(graph.values[name].bytes for name in graph.weights))
        # the padding of small weights in an arena
        self.rounding = sum(-size % ALIGNMENT for size in stored if size <= IN_ARENA_BYTES)
        self.outputs = set(self.problem.outputs)
        self.reads = edges([step.reads for step in steps], [step.node.output for step in steps])
        self.op_types = [step.node.op_type for step in steps]
        self.strict = lower(self.problem, strict_order(self.reads, self.op_types))

    def _node(self, step: EmittedNode, asked: Node | None) -> Node:
        writes = tuple(self.number[name] for name in step.node.output if name)
        reads = tuple(dict.fromkeys(self.number[name] for name in step.reads if name in self.number))
        if asked is None or step.op is None:
            base = ((writes[0], self.number.get(step.reads[0], RESIDENT)),)
            return Node(self.launch, reads, writes, views=base if step.node.op_type in ("Reshape", "Unsqueeze") else ())
        views = tuple(self._pairs(step, step.op, asked.views)) if asked.views else ()
        overwrites = tuple(self._pairs(step, step.op, asked.overwrites)) if asked.overwrites else ()
        overwrites = tuple(pair for pair in overwrites if pair[1] not in self.unknown)
        return Node(asked.cost, reads, writes, asked.workspace, views=views, overwrites=overwrites, early=asked.early)

    def _pairs(self, step: EmittedNode, op: Op, pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The op's (write, read) pairs in the numbers of this copy; writes that are left out share nothing."""
        made = {value: self.number[name] for name, value in step.origin.items()}
        for write, read in pairs:
            if self.values[write] not in made:
                continue
            if read == RESIDENT:
                yield made[self.values[write]], RESIDENT
            else:
                place = op.inputs.index(self.values[read])
                yield made[self.values[write]], self.number[step.node.input[place]]

    def strict_promise(self) -> Promise:
        """The peak in the strict session, and the time."""
        outcome = simulate(self.problem, self.strict)
        return Promise(outcome.peak, time=outcome.cost)


def values_of(graph: Graph) -> list[str]:
    """The values by number, as the problem has them."""
    return [name for op in graph.ops for name in op.writes]
