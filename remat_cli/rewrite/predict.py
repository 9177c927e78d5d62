"""What a rewritten graph needs in each session type, guards, anchors and their constants included.

Invariant: the strict figure is `simulate`'s for the very nodes that were written, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Sequence

from remat_cli.graph import Graph
from remat_cli.planfile import Promise
from remat_cli.rewrite.copies import Step
from remat_cli.rewrite.orders import default_order, edges, strict_order
from solvers.plan import Allocate, Compute, Deallocate, lower
from solvers.problem import RESIDENT, Node, Problem
from solvers.simulate import simulate


def promise(graph: Graph, problem: Problem, steps: Sequence[Step], constants: int) -> Promise:
    """The predicted peak of both session types; `constants`: bytes of initializers that the rewriting added."""
    rewritten = _Rewritten(graph, problem, steps, constants)
    return Promise(strict=rewritten.strict_peak(), default=rewritten.default_peak())


class _Rewritten:
    """The rewritten graph as a problem of its own: one node a step, each run once."""

    def __init__(self, graph: Graph, problem: Problem, steps: Sequence[Step], constants: int) -> None:
        self.names = [name for step in steps for name in step.node.output if name]
        self.number = {name: index for index, name in enumerate(self.names)}
        origin = {name: value for step in steps for name, value in step.origin.items()}
        tensors = [graph.values[origin[name]] if name in origin else None for name in self.names]
        self.shapes = [(t.shape, t.bytes) if t else None for t in tensors]
        index_of = {op.name: index for index, op in enumerate(graph.ops)}
        nodes = [self._node(step, problem.nodes[index_of[step.op.name]] if step.op else None) for step in steps]
        self.problem = Problem(
            nodes=tuple(nodes),
            sizes=tuple(t.bytes if t else 0 for t in tensors),
            outputs=tuple(self.number[name] for name in graph.outputs if name in self.number),
            resident=problem.resident + constants,
            unread_stay=problem.unread_stay,
        )
        self.reads = edges([step.reads for step in steps], [step.node.output for step in steps])
        self.op_types = [step.node.op_type for step in steps]

    def _node(self, step: Step, asked: Node | None) -> Node:
        writes = tuple(self.number[name] for name in step.node.output if name)
        reads = tuple(dict.fromkeys(self.number[name] for name in step.reads if name in self.number))
        if asked is None or step.op is None:
            views = ((writes[0], self.number.get(step.reads[0], RESIDENT)),) if step.node.op_type != "Slice" else ()
            return Node(0, reads, writes, views=views)
        first = self.number.get(step.node.input[0], RESIDENT) if step.node.input else RESIDENT
        shares = tuple((writes[0], first) for _ in asked.views[:1])
        over = tuple((writes[0], first) for _ in asked.overwrites[:1] if first != RESIDENT)
        return Node(0, reads, writes, asked.workspace, views=shares, overwrites=over)

    def strict_peak(self) -> int:
        order = strict_order(self.reads, self.op_types)
        return simulate(self.problem, lower(self.problem, order)).peak

    def default_peak(self) -> int:
        """With reuse of buffers on, as it is by default: a dead one waits for a later tensor of its shape."""
        plan = lower(self.problem, default_order(self.reads))
        return self.problem.resident + self._peak_with_reuse(plan.statements)

    def _peak_with_reuse(self, statements: Sequence[Allocate | Compute | Deallocate]) -> int:
        """onnxruntime's static free list: buffers are held from their first tensor to the end of their last."""
        waiting: dict[object, list[int]] = {}  # shape -> buffers free for reuse, the most recently freed last
        buffer: dict[int, int] = {}  # register -> its buffer
        holders: dict[int, int] = {}
        spans: list[list[int]] = []  # buffer -> first step, last step, bytes
        shape: list[object] = []
        work: list[int] = []
        outputs = set(self.problem.outputs)
        for statement in statements:
            match statement:
                case Allocate(value, register, size, shares):
                    found = buffer[shares] if shares is not None else None
                    stack = waiting.get(self.shapes[value]) if value not in outputs and self.shapes[value] else None
                    if found is None and size and stack:
                        found = stack.pop()
                    if found is None:
                        found = len(spans)
                        spans.append([len(work), len(work), size])
                        shape.append(None if value in outputs else self.shapes[value])
                    buffer[register] = found
                    holders[found] = holders.get(found, 0) + 1
                    spans[found][1] = len(work)
                case Compute(node):
                    work.append(self.problem.nodes[node].workspace)
                case Deallocate(register):
                    found = buffer.pop(register)
                    holders[found] -= 1
                    spans[found][1] = len(work) - 1
                    if not holders[found] and shape[found] is not None:
                        waiting.setdefault(shape[found], []).append(found)
        for found in buffer.values():
            spans[found][1] = len(work) - 1
        return _highest(spans, work)


def _highest(spans: Sequence[Sequence[int]], work: Sequence[int]) -> int:
    """The most that is held at any step by spans of (first, last, bytes), with what each step works in."""
    change = [0] * (len(work) + 1)
    for first, last, size in spans:
        change[first] += size
        change[last + 1] -= size
    peak = held = 0
    for delta, workspace in zip(change, work, strict=False):
        held += delta
        peak = max(peak, held + workspace)
    return peak
