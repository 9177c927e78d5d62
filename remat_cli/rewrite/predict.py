"""Predicts what a rewritten graph needs in each session type, guards, anchors and their constants included.

Invariant: the strict figure is `simulate`'s for the very nodes that were written, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from remat_cli.model.graph import Graph, Op
from remat_cli.model.promise import Promise
from remat_cli.rewrite.copies import EmittedNode
from remat_cli.rewrite.orders import default_order, edges, strict_order
from solvers.placement.growing import grown
from solvers.placement.pattern import Held, block_of, most_at_once
from solvers.placement.region import ALIGNMENT
from solvers.plan import Allocate, Compute, Deallocate, Plan, lower
from solvers.problem import RESIDENT, Node, Problem
from solvers.simulate import simulate

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
        self.at_the_peak: tuple[set[str], set[str], int] | None = None

    @cached_property
    def default(self) -> Plan:
        """The plan in the order of default sessions."""
        return lower(self.problem, default_order(self.reads))

    @cached_property
    def shown(self) -> set[str]:
        return {self.names[value] for value in _find_written_over(self.problem, self.strict)}

    @cached_property
    def freed(self) -> set[int]:
        return {one.register for one in self.default.statements if isinstance(one, Deallocate)}

    def _node(self, step: EmittedNode, asked: Node | None) -> Node:
        writes = tuple(self.number[name] for name in step.node.output if name)
        reads = tuple(dict.fromkeys(self.number[name] for name in step.reads if name in self.number))
        if asked is None or step.op is None:
            base = ((writes[0], self.number.get(step.reads[0], RESIDENT)),)
            return Node(self.launch, reads, writes, views=base if step.node.op_type in ("Reshape", "Unsqueeze") else ())
        views, overwrites = (tuple(self._pairs(step, step.op, pairs)) for pairs in (asked.views, asked.overwrites))
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
        spans, work = self._buffers(hidden)
        return replace(self.strict_promise(), default=self.problem.resident + _find_peak(spans, work)[0])

    def default_lifetimes(self, hidden: Collection[str] = ()) -> list[Held]:
        """From which step, before which one, and how many bytes: what default options hold, in their order."""
        spans, work = self._buffers(hidden)
        found = [(span.tenants[0][1], span.tenants[-1][2] + 1, span.size) for span in spans]
        return found + [(step, step + 1, size) for step, size in enumerate(work) if size]

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
        spans, work = self._buffers(hidden)
        apart = {self.names[value] for value in self.outputs}
        held = [(span.tenants[0][1], span.tenants[-1][2] + 1, span.size) for span in spans]
        outer = [any(name in apart for name, _, _ in span.tenants) for span in spans]
        beside = [life for life, out in zip(held, outer, strict=True) if out]
        beside += [(step, step + 1, size) for step, size in enumerate(work) if size]
        return block_of(life for life, out in zip(held, outer, strict=True) if not out), beside

    def idle(self, known: Collection[str] = (), hiding: int = 0) -> set[str]:
        """The values to hide, so that no buffers wait for them at the peak of the default session; none of those
        `known`.

        `hiding`: how many further steps to take. Each hides the values for which smaller and smaller buffers wait at
        any time. That can make the layout of later runs smaller, and each hidden value costs some small kernels.
        """
        shown = self.shown.union(known)
        if self.at_the_peak is None or self.at_the_peak[0] != shown:
            hidden = self._at_the_peak(shown)
            self.at_the_peak = shown, hidden, _find_peak(*self._buffers(hidden))[0]
        _, hidden, peak = self.at_the_peak
        return self._anywhere(shown, hidden, peak // WAITING_PARTS[hiding - 1]) if hiding else hidden

    def _at_the_peak(self, shown: Collection[str]) -> set[str]:
        hidden: set[str] = set()
        for _ in range(HIDING_ROUNDS):
            spans, work = self._buffers(hidden)
            _, step = _find_peak(spans, work)
            waiting = {name for span in spans for name in span.held_idle(step, shown)} - hidden
            if not waiting:
                break
            hidden |= waiting
        return hidden

    def _anywhere(self, shown: Collection[str], known: Collection[str], size: int) -> set[str]:
        """The known values, and all for which buffers of that size or more wait longer than from one step to the
        next."""
        hidden = set(known)
        for _ in range(HIDING_ROUNDS):
            spans, _ = self._buffers(hidden)
            waiting = {name for span in spans if span.size >= size for name in span.ever_idle(shown)} - hidden
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
        buffer: dict[int, Span] = {}  # register -> the buffer in which it lies
        spans: list[Span] = []
        work: list[int] = []
        for statement in statements:
            match statement:
                case Allocate():
                    value, register = statement.value, statement.register
                    size, shares = statement.bytes, statement.shares
                    if shares is None:
                        shape = self._shape(value, hidden) if size and register in self.freed else None
                        old = _reuse(waiting.get(shape)) if size and shape else None
                        if old is None:
                            spans.append(Span(size, shape))
                        buffer[register] = old or spans[-1]
                        buffer[register].begin(self.names[value], len(work))
                    else:
                        buffer[register] = buffer[shares]
                    buffer[register].holders += 1
                case Compute():
                    work.append(self.problem.nodes[statement.node].workspace)
                case Deallocate():
                    found = buffer.pop(statement.register)
                    found.holders -= 1
                    if not found.holders:
                        found.end(len(work) - 1)
                        if found.shape:
                            waiting.setdefault(found.shape, []).append(found)
        for found in buffer.values():
            found.end(len(work) - 1)
        return spans, work

    def _shape(self, value: int, hidden: Collection[str]) -> object:
        """What a buffer and a tensor must have in common for reuse; None for a tensor that never reuses one."""
        return None if value in self.outputs or self.names[value] in hidden else self.shapes[value]


def values_of(graph: Graph) -> list[str]:
    """The values by number, as the problem has them."""
    return [name for op in graph.ops for name in op.writes]


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

    def held_idle(self, step: int, shown: Collection[str]) -> list[str]:
        """The value to hide so that the buffer is not held idle at `step`: the tensor that it waits for, or its
        first."""
        return self._waiting(shown, lambda before, after: before < step < after)

    def ever_idle(self, shown: Collection[str]) -> list[str]:
        """The values to hide so that the buffer is not held idle at any step."""
        return self._waiting(shown, lambda before, after: before + 1 < after)

    def _waiting(self, shown: Collection[str], idle: Callable[[int, int], bool]) -> list[str]:
        pairs = zip(self.tenants, self.tenants[1:], strict=False)
        found = [(after[0], self.tenants[0][0]) for before, after in pairs if idle(before[2], after[1])]
        return [name for names in found for name in [name for name in names if name not in shown][:1]]


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


def _reuse(stack: list[Span] | None) -> Span | None:
    return stack.pop() if stack else None


def _find_peak(spans: Sequence[Span], work: Sequence[int]) -> tuple[int, int]:
    """The most that is held at any step, workspaces included, and the step at which it is."""
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
