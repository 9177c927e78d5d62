"""What a plan costs and needs: walks it forward and believes nothing.

Invariant: shares no code with any solver nor with `lower`. Every read must be there, every write must have its place,
every node must have run, every output must be there at the end, and nothing may be freed that the runtime would keep.
Nobody may read an input as it was once another value was written in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from solvers.plan import Allocate, Compute, Deallocate, Plan
from solvers.problem import RESIDENT, Node, Problem


class IllegalPlan(ValueError):
    """A plan that could not be run; the message names the statement."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What running the plan costs and needs, and where it needs most."""

    cost: int
    peak: int
    peak_step: int  # index of the compute (in the order) during which the peak is reached
    peak_values: tuple[int, ...]  # what is in memory then, resident things aside
    memory: tuple[int, ...]  # bytes in use during each compute


@dataclass(slots=True)
class _Copy:
    value: int
    block: int
    written: bool = False
    read: bool = False
    inputs: frozenset[int] = frozenset()  # in whose memory it lies, as a view


@dataclass(slots=True)
class _Memory:
    copies: dict[int, _Copy] = field(default_factory=dict)  # register -> live copy
    latest: dict[int, int] = field(default_factory=dict)  # value -> register of its newest written copy
    bytes: dict[int, int] = field(default_factory=dict)  # block -> its size
    holders: dict[int, int] = field(default_factory=dict)  # block -> live registers in it
    used: int = 0
    replaced: set[int] = field(default_factory=set)  # inputs in whose place another value was written


@dataclass(slots=True)
class _Running:
    """A compute that is being checked. `reading`: value -> the register of the copy that it reads."""

    problem: Problem
    memory: _Memory
    node: Node
    reading: dict[int, int]
    place: int

    def inputs(self) -> frozenset[int]:
        """The inputs that the node reads, by itself or through views."""
        behind = (self.memory.copies[register].inputs for register in self.reading.values())
        return frozenset(number for number, _ in self.node.takes).union(*behind)


def simulate(problem: Problem, plan: Plan) -> Outcome:
    """Run the plan on paper. Raises IllegalPlan at the first statement that could not be carried out."""
    memory = _Memory()
    ran = [0] * len(problem.nodes)
    seen: set[int] = set()
    pending: list[int] = []  # registers allocated for the next compute
    must_end: list[int] = []  # reads overwritten by the last compute: to be freed before the next
    usage: list[int] = []
    peak, peak_step, cost = problem.resident, 0, 0

    for place, statement in enumerate(plan.statements):
        match statement:
            case Allocate():
                if statement.register in seen:
                    raise IllegalPlan(f"statement {place}: register {statement.register} is allocated twice")
                seen.add(statement.register)
                pending.append(statement.register)
                _allocate(memory, statement, place)
            case Deallocate():
                _deallocate(problem, memory, statement.register, place)
            case Compute():
                if any(register in memory.copies for register in must_end):
                    raise IllegalPlan(f"statement {place}: an overwritten value is still held")
                must_end = _compute(problem, memory, statement, pending, place)
                pending = []
                node = problem.nodes[statement.node]
                ran[statement.node] += 1
                cost += node.cost
                now = problem.resident + memory.used + node.workspace
                usage.append(now)
                if now > peak or len(usage) == 1:
                    peak, peak_step = now, len(usage) - 1
    _check_end(problem, memory, ran, pending, must_end)
    return Outcome(cost, peak, peak_step, _held_during(plan, peak_step), tuple(usage))


def _held_during(plan: Plan, step: int) -> tuple[int, ...]:
    """The values of all registers held during one compute, in a plan known to be legal."""
    held: dict[int, int] = {}
    computes = 0
    for statement in plan.statements:
        match statement:
            case Allocate():
                held[statement.register] = statement.value
            case Deallocate():
                del held[statement.register]
            case Compute():
                if computes == step:
                    break
                computes += 1
    return tuple(sorted(held.values()))


def _allocate(memory: _Memory, statement: Allocate, place: int) -> None:
    block = statement.register
    if statement.shares is not None:
        if statement.shares not in memory.copies:
            raise IllegalPlan(f"statement {place}: shares register {statement.shares}, which is not held")
        if statement.bytes:
            raise IllegalPlan(f"statement {place}: shares memory and asks for {statement.bytes} bytes of its own")
        block = memory.copies[statement.shares].block
    else:
        memory.bytes[block] = statement.bytes
        memory.used += statement.bytes
    memory.holders[block] = memory.holders.get(block, 0) + 1
    memory.copies[statement.register] = _Copy(statement.value, block)


def _deallocate(problem: Problem, memory: _Memory, register: int, place: int) -> None:
    copy = memory.copies.pop(register, None)
    if copy is None:
        raise IllegalPlan(f"statement {place}: register {register} is not held")
    if not copy.written:
        raise IllegalPlan(f"statement {place}: register {register} is freed before anything is written to it")
    if problem.unread_stay and not copy.read and copy.block == register:
        raise IllegalPlan(f"statement {place}: register {register} was never read, and the runtime keeps such copies")
    if memory.latest.get(copy.value) == register:
        del memory.latest[copy.value]
    memory.holders[copy.block] -= 1
    if not memory.holders[copy.block]:
        memory.used -= memory.bytes.pop(copy.block)


def _compute(problem: Problem, memory: _Memory, statement: Compute, pending: list[int], place: int) -> list[int]:
    """Check one compute and write its results; returns the registers that it overwrote."""
    if not 0 <= statement.node < len(problem.nodes):
        raise IllegalPlan(f"statement {place}: node {statement.node} does not exist")
    node = problem.nodes[statement.node]
    if len(statement.registers) != len(node.writes):
        raise IllegalPlan(f"statement {place}: node {statement.node} writes {len(node.writes)} values")
    given = [register for register in statement.registers if register is not None]
    if sorted(given) != sorted(pending):
        raise IllegalPlan(f"statement {place}: node {statement.node} does not write exactly what was allocated for it")
    reading: dict[int, int] = {}
    for value in node.reads:
        if value not in memory.latest:
            raise IllegalPlan(f"statement {place}: node {statement.node} reads value {value}, which is not in memory")
        reading[value] = memory.latest[value]
        memory.copies[reading[value]].read = True
    running = _Running(problem, memory, node, reading, place)
    if memory.replaced:
        _check_inputs(running)
    overwritten: list[int] = []
    for value, register in zip(node.writes, statement.registers, strict=True):
        if register is None:
            if value not in problem.optional:
                raise IllegalPlan(f"statement {place}: node {statement.node} cannot leave out value {value}")
            memory.latest.pop(value, None)
            continue
        overwritten += _check_place(running, value, register)
    for value, register in zip(node.writes, statement.registers, strict=True):
        if register is not None:
            memory.copies[register].written = True
            memory.latest[value] = register
    memory.replaced.update(number for _, number in node.updates)
    return overwritten


def _check_inputs(running: _Running) -> None:
    """What it reads of inputs, by itself or through views, must be as it was."""
    if gone := running.inputs() & running.memory.replaced:
        raise IllegalPlan(
            f"statement {running.place}: input {min(gone)} is read, "
            "in whose place another value was written before that"
        )


def _check_place(running: _Running, value: int, register: int) -> list[int]:
    """A write has its own full place, or shares as its node allows; returns the register it overwrites, if any."""
    memory, node, place, sizes = running.memory, running.node, running.place, running.problem.sizes
    copy, views = memory.copies[register], node.views
    if copy.value != value:
        raise IllegalPlan(f"statement {place}: register {register} was allocated for value {copy.value}, not {value}")
    if copy.block == register:
        of_resident = node.base(value) == RESIDENT  # of several bases the first counts
        if memory.bytes[register] != sizes[value] and not (of_resident and not memory.bytes[register]):
            raise IllegalPlan(f"statement {place}: register {register} does not have the size of value {value}")
        if of_resident and not memory.bytes[register] and all(write != value for write, _ in node.updates):
            copy.inputs = running.inputs()
        return []
    sources = {r: v for v, r in running.reading.items() if memory.copies[r].block == copy.block}
    if bases := [r for r, v in sources.items() if (value, v) in views]:
        copy.inputs = running.inputs() if memory.copies[bases[0]].inputs else frozenset()
        return []
    over = [r for r, v in sources.items() if (value, v) in node.overwrites and sizes[v] == sizes[value]]
    if not over or memory.holders[copy.block] != 2 or memory.bytes[copy.block] != sizes[value]:
        raise IllegalPlan(f"statement {place}: value {value} may not take the place it was given")
    return over


def _check_end(problem: Problem, memory: _Memory, ran: list[int], pending: list[int], must_end: list[int]) -> None:
    if pending:
        raise IllegalPlan("the plan ends with a value allocated but not computed")
    if any(register in memory.copies for register in must_end):
        raise IllegalPlan("the plan ends with an overwritten value still held")
    for index, times in enumerate(ran):
        if not times:
            raise IllegalPlan(f"node {index} never runs")
        if times > 1 and problem.nodes[index].once:
            raise IllegalPlan(f"node {index} may run only once, but runs {times} times")
    for value in problem.outputs:
        if value not in memory.latest:
            raise IllegalPlan(f"output {value} is not in memory at the end")
        register = memory.latest[value]
        if memory.copies[register].block != register or memory.bytes[register] != problem.sizes[value]:
            raise IllegalPlan(f"output {value} does not end in memory of its own")
