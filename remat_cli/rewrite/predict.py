"""Predicts what a rewritten graph needs in each session type, guards, anchors and their constants included.

Invariant: the strict figure is `simulate`'s for the very nodes that were written, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from remat_cli.model.graph import Graph, Op
from remat_cli.model.promise import Promise
from remat_cli.onnx_graph.orders import default_order, edges, strict_order
from remat_cli.rewrite.copies import EmittedNode
from solvers.placement.chunks import ALIGNMENT
from solvers.placement.growing import grown
from solvers.placement.pattern import Held, block_of, most_at_once
from solvers.placement.reusing import Buffers, Tenants, tenants_of
from solvers.plan import Allocate, Plan, lower
from solvers.problem import RESIDENT, Node, Problem
from solvers.simulate import simulate

Flags = npt.NDArray[np.bool_]

IN_ARENA_BYTES = 127  # in bytes; larger weights stay outside of a CPU's arena, where the model file's loader put them
HIDING_ROUNDS = 40  # rounds of hiding the values whose buffers are idle at the peak
# one over this is the share of the peak that a buffer must have to be hidden, step by step
WAITING_PARTS = (16, 128, 1024)


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
        self.fuses = bool(problem.inner)  # default sessions fuse some of its ops into other kernels
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
        # the shapes shown to the planner, the values to hide then, and the peak that is left
        self.at_the_peak: tuple[set[str], set[int], int] | None = None

    @cached_property
    def default(self) -> Plan:
        """The plan in the order of default sessions."""
        return lower(self.problem, default_order(self.reads))

    @cached_property
    def shown(self) -> set[str]:
        return {self.names[value] for value in _find_written_over(self.problem, self.strict)}

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

    def promise(self, hidden: Collection[str] = ()) -> Promise:
        """The peak in each session type, and the time; `hidden`: values whose shapes the planner does not see."""
        return replace(self.strict_promise(), default=self.problem.resident + self._buffers(hidden).peak()[0])

    def default_lifetimes(self, hidden: Collection[str] = ()) -> list[Held]:
        """From which step, before which one, and how many bytes: what default options hold, in their order."""
        return self._buffers(hidden).held + self._worked_in()

    def later(self, hidden: Collection[str] = ()) -> int:
        """The bytes that later runs hold with default options: a block laid out by the first run, and outputs beside
        it."""
        block, beside = self._laid_out(hidden)
        return self.problem.resident + block + most_at_once(beside)

    def grown_by_default(self, hidden: Collection[str] = ()) -> int:
        """What a process comes to hold with default options: the arena keeps the regions of the first run.

        Later runs ask for their block, which seldom fits into what is free there, and for the rest beside it.
        """
        end = len(self.problem.nodes)
        block, beside = self._laid_out(hidden)
        again = [(end, 2 * end, block), *((start + end, stop + end, size) for start, stop, size in beside)]
        return self.problem.resident + grown([*self.default_lifetimes(hidden), *again])

    def _laid_out(self, hidden: Collection[str]) -> tuple[int, list[Held]]:
        """The block of later runs, and what these ask for one by one."""
        buffers = self._buffers(hidden)
        outer = [value in self.outputs for value in buffers.tenants.value[buffers.firsts].tolist()]
        beside = [life for life, out in zip(buffers.held, outer, strict=True) if out]
        inside = [life for life, out in zip(buffers.held, outer, strict=True) if not out]
        return block_of(inside), beside + self._worked_in()

    def _worked_in(self) -> list[Held]:
        return [(step, step + 1, size) for step, size in enumerate(self.tenants.work.tolist()) if size]

    def idle(self, known: Collection[str] = (), hiding: int = 0) -> set[str]:
        """The values to hide, so that no buffers wait for them at the peak of the default session; none of those
        `known`.

        `hiding`: how many further steps to take. Each hides the values for which smaller and smaller buffers wait at
        any time. That can make the layout of later runs smaller, and each hidden value costs some small kernels.
        """
        shown = self.shown.union(known)
        if self.at_the_peak is None or self.at_the_peak[0] != shown:
            self.at_the_peak = shown, *self._at_the_peak(self._flags(shown))
        _, hidden, peak = self.at_the_peak
        if hiding:
            hidden = self._anywhere(self._flags(shown), hidden, peak // WAITING_PARTS[hiding - 1])
        return {self.names[value] for value in hidden}

    def _at_the_peak(self, shown: Flags) -> tuple[set[int], int]:
        """The values to hide, and the peak that is left."""

        def waiting(buffers: Buffers) -> set[int]:
            return buffers.idle_at(buffers.peak()[1], shown)

        hidden = self._hidden_until_none(set(), waiting)
        return hidden, self.tenants.buffers(hidden).peak()[0]

    def _anywhere(self, shown: Flags, known: Collection[int], size: int) -> set[int]:
        """The known values, and all for which buffers of that size or more wait longer than from one step to the
        next."""
        return self._hidden_until_none(set(known), lambda buffers: buffers.ever_idle(size, shown))

    def _hidden_until_none(self, hidden: set[int], waiting: Callable[[Buffers], set[int]]) -> set[int]:
        """These values, and those for which buffers wait still when they are hidden, until there are none."""
        for _ in range(HIDING_ROUNDS):
            fresh = waiting(self.tenants.buffers(hidden)) - hidden
            if not fresh:
                break
            hidden |= fresh
        return hidden

    def _flags(self, names: Collection[str]) -> Flags:
        return np.array([name in names for name in self.names], np.bool_)

    @cached_property
    def tenants(self) -> Tenants:
        return tenants_of(self.problem, self.default, self._shape)

    def _buffers(self, hidden: Collection[str]) -> Buffers:
        return self.tenants.buffers({self.number[name] for name in hidden if name in self.number})

    def _shape(self, value: int) -> object | None:
        """What a buffer and a tensor must have in common for reuse; None for a tensor that never reuses one."""
        return None if value in self.outputs else self.shapes[value]


def values_of(graph: Graph) -> list[str]:
    """The values by number, as the problem has them."""
    return [name for op in graph.ops for name in op.writes]


def _find_written_over(problem: Problem, plan: Plan) -> set[int]:
    """Values that a plan writes over others, those others and their bases: their shapes must be known."""
    base = {write: read for node in problem.nodes for write, read in node.views}
    held: dict[int, int] = {}
    found: set[int] = set()
    stack: list[int] = []
    for statement in plan.statements:
        if isinstance(statement, Allocate):
            held[statement.register] = statement.value
            if statement.shares is not None and statement.value not in base:
                stack += [statement.value, held[statement.shares]]
    while stack:
        value = stack.pop()
        if value != RESIDENT and value not in found:
            found.add(value)
            stack.append(base.get(value, RESIDENT))
    return found
