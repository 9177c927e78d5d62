"""What a rewritten graph needs in each session type, guards, anchors and their constants included.

Invariant: the strict figure is `simulate`'s for the very nodes that were written, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from remat_cli.graph import Graph
from remat_cli.planfile import Promise
from remat_cli.rewrite.copies import Step
from remat_cli.rewrite.orders import default_order, edges, strict_order
from solvers.arena import fits, least_arena
from solvers.plan import Allocate, Compute, Deallocate, lower
from solvers.problem import RESIDENT, Node, Problem
from solvers.simulate import simulate

ROUNDS = 40  # of hiding what is idle at the peak


class Prediction:
    """The rewritten graph as a problem of its own: one node a step, each run once.

    `constants`: bytes of initializers that the rewriting added.
    """

    def __init__(self, graph: Graph, problem: Problem, steps: Sequence[Step], constants: int) -> None:
        self.names = [name for step in steps for name in step.node.output if name]
        self.number = {name: index for index, name in enumerate(self.names)}
        origin = {name: value for step in steps for name, value in step.origin.items()}
        tensors = [graph.values[origin[name]] if name in origin else None for name in self.names]
        self.shapes = [(t.shape, t.bytes) if t else None for t in tensors]
        added = {name: step.bytes for step in steps for name in step.node.output}
        index_of = {op.name: index for index, op in enumerate(graph.ops)}
        nodes = [self._node(step, problem.nodes[index_of[step.op.name]] if step.op else None) for step in steps]
        self.problem = Problem(
            nodes=tuple(nodes),
            sizes=tuple(t.bytes if t else added.get(name, 0) for name, t in zip(self.names, tensors, strict=True)),
            outputs=tuple(self.number[name] for name in graph.outputs if name in self.number),
            resident=problem.resident + constants,
            unread_stay=problem.unread_stay,
        )
        self.outputs = set(self.problem.outputs)
        self.reads = edges([step.reads for step in steps], [step.node.output for step in steps])
        self.op_types = [step.node.op_type for step in steps]
        self.strict = lower(self.problem, strict_order(self.reads, self.op_types))
        self.default = lower(self.problem, default_order(self.reads))

    def _node(self, step: Step, asked: Node | None) -> Node:
        writes = tuple(self.number[name] for name in step.node.output if name)
        reads = tuple(dict.fromkeys(self.number[name] for name in step.reads if name in self.number))
        if asked is None or step.op is None:
            shares = step.node.op_type in ("Reshape", "Unsqueeze")
            return Node(0, reads, writes, views=((writes[0], self.number.get(step.reads[0], RESIDENT)),) * shares)
        first = self.number.get(step.node.input[0], RESIDENT) if step.node.input else RESIDENT
        shares = tuple((writes[0], first) for _ in asked.views[:1])
        over = tuple((writes[0], first) for _ in asked.overwrites[:1] if first != RESIDENT)
        return Node(0, reads, writes, asked.workspace, views=shares, overwrites=over)

    def promise(self, hidden: Collection[str] = ()) -> Promise:
        """The peak in each session type; `hidden`: values whose shapes the planner does not see."""
        strict = simulate(self.problem, self.strict).peak
        spans, work = self._buffers(hidden)
        default = self.problem.resident + _highest(spans, work)[0]
        return Promise(strict, default, least_arena(self.problem, self.strict, strict))

    def fits(self, budget: int) -> bool:
        """Whether the strict session runs under a hard cap of `budget` bytes, free memory being in pieces."""
        return fits(self.problem, self.strict, budget - self.problem.resident)

    def idle(self) -> set[str]:
        """The values to hide, lest buffers wait for them at the peak of the default session."""
        hidden: set[str] = set()
        for _ in range(ROUNDS):
            spans, work = self._buffers(hidden)
            _, step = _highest(spans, work)
            waiting = {name for span in spans for name in span.waited_for(step)}
            if not waiting:
                break
            hidden |= waiting
        return hidden

    def _buffers(self, hidden: Collection[str]) -> tuple[list[Span], list[int]]:
        """onnxruntime's static free list: a dead buffer waits for a later tensor of its shape, the last freed first.

        In default order; returns the buffers, and what each step works in.
        """
        statements = self.default.statements
        waiting: dict[object, list[Span]] = {}
        buffer: dict[int, Span] = {}  # register -> where it lives
        spans: list[Span] = []
        work: list[int] = []
        freed = {statement.register for statement in statements if isinstance(statement, Deallocate)}
        for statement in statements:
            match statement:
                case Allocate(value, register, size, shares):
                    if shares is not None:
                        found = buffer[shares]
                    else:
                        shape = self._shape(value, hidden) if register in freed else None
                        found = _reused(waiting.get(shape)) if size and shape else None
                        if found is None:
                            found = Span(size, shape)
                            spans.append(found)
                        found.begin(self.names[value], len(work))
                    buffer[register] = found
                    found.holders += 1
                case Compute(node):
                    work.append(self.problem.nodes[node].workspace)
                case Deallocate(register):
                    found = buffer.pop(register)
                    found.holders -= 1
                    if not found.holders:
                        found.end(len(work) - 1)
                        if found.shape:
                            waiting.setdefault(found.shape, []).append(found)
        for found in buffer.values():
            found.end(len(work) - 1)
        return spans, work

    def _shape(self, value: int, hidden: Collection[str]) -> object:
        """What a buffer must have in common with a tensor to be reused for it; None if it never is."""
        return None if value in self.outputs or self.names[value] in hidden else self.shapes[value]


class Span:
    """A buffer: the tensors that live in it one after the other."""

    def __init__(self, size: int, shape: object) -> None:
        self.size = size
        self.shape = shape
        self.holders = 0
        self.tenants: list[tuple[str, int, int]] = []  # name, first step, last step

    def begin(self, name: str, step: int) -> None:
        self.tenants.append((name, step, step))

    def end(self, step: int) -> None:
        name, first, _ = self.tenants[-1]
        self.tenants[-1] = (name, first, step)

    def waited_for(self, step: int) -> list[str]:
        """The tensor for which the buffer is held idle at `step`, if it is."""
        pairs = zip(self.tenants, self.tenants[1:], strict=False)
        return [after[0] for before, after in pairs if before[2] < step < after[1]]


def _reused(stack: list[Span] | None) -> Span | None:
    return stack.pop() if stack else None


def _highest(spans: Sequence[Span], work: Sequence[int]) -> tuple[int, int]:
    """The most that is held at any step, with what the step works in; and which step that is."""
    change = [0] * (len(work) + 1)
    for span in spans:
        change[span.tenants[0][1]] += span.size
        change[span.tenants[-1][2] + 1] -= span.size
    peak = held = step = 0
    for index, (delta, workspace) in enumerate(zip(change, work, strict=False)):
        held += delta
        if held + workspace > peak:
            peak, step = held + workspace, index
    return peak, step
