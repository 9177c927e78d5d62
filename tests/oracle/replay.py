"""What an order costs and needs, by the lifetimes of its copies; shares no code with `lower`, `simulate` or a solver.

A copy lives from the step that makes it to its last reader before the value is made again; an output's last copy to
the end. Copies that share memory form a block, which takes its maker's bytes for as long as any of them lives.

Invariant: None for an order that cannot run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from solvers.problem import RESIDENT, Node, Problem


@dataclass(slots=True)
class Copy:
    made: int
    ends: int
    final: bool = False
    read: bool = False
    block: Block | None = None


@dataclass(slots=True)
class Block:
    bytes: int
    pinned: bool = False  # an input or a weight lives there
    copies: list[Copy] = field(default_factory=list)


def replay(problem: Problem, order: Sequence[int]) -> tuple[int, list[int]] | None:
    """(cost, bytes in use during each compute)."""
    made = _copies(problem, order)
    if made is None or _too_late(problem, order):
        return None
    blocks = _blocks(problem, order, made)
    memory = [problem.resident + problem.nodes[index].workspace for index in order]
    for block in blocks:
        last = max(copy.ends for copy in block.copies)
        for step in range(block.copies[0].made, min(last, len(order) - 1) + 1):
            memory[step] += block.bytes
    return sum(problem.nodes[index].cost for index in order), memory


def _too_late(problem: Problem, order: Sequence[int]) -> bool:
    """Whether an input is read, perhaps through views, after another value was written in its place."""
    lies_in: dict[int, set[int]] = {}  # value -> inputs, of the newest copy
    gone: set[int] = set()
    for index in order:
        node = problem.nodes[index]
        read = {number for number, _ in node.takes} | {n for value in node.reads for n in lies_in.get(value, ())}
        if read & gone:
            return True
        updated = dict(node.updates)
        for value in node.writes:
            base = _base(node, value)
            in_input = value not in updated and base is not None and (base == RESIDENT or bool(lies_in.get(base)))
            lies_in[value] = read if in_input else set()
        gone |= set(updated.values())
    return False


Made = list[dict[int, Copy]]  # for each step: what it makes


def _copies(problem: Problem, order: Sequence[int]) -> Made | None:
    """Every copy with its lifetime."""
    newest: dict[int, Copy] = {}
    made: Made = []
    for step, index in enumerate(order):
        node = problem.nodes[index]
        for value in node.reads:
            if value not in newest:
                return None
            newest[value].ends, newest[value].read = step, True
        made.append({value: Copy(step, step) for value in node.writes})
        newest.update(made[-1])
    runs = [list(order).count(index) for index in range(len(problem.nodes))]
    if 0 in runs or any(node.once and count > 1 for node, count in zip(problem.nodes, runs, strict=True)):
        return None
    for value in problem.outputs:
        newest[value].final, newest[value].ends = True, len(order)
    return made


def _blocks(problem: Problem, order: Sequence[int], made: Made) -> list[Block]:
    blocks: list[Block] = []
    newest: dict[int, Copy] = {}
    for step, index in enumerate(order):
        node = problem.nodes[index]
        for value, copy in made[step].items():
            if value in problem.optional and not copy.read and not copy.final:
                continue  # left out
            block = None if copy.final else _shared(problem, node, value, newest, step)
            if block is None:
                of_resident = not copy.final and _base(node, value) == RESIDENT
                block = Block(0 if of_resident else problem.sizes[value], of_resident)
                blocks.append(block)
                if problem.unread_stay and not copy.read:
                    copy.ends = len(order)
            copy.block = block
            block.copies.append(copy)
        newest.update(made[step])
    return blocks


def _base(node: Node, value: int) -> int | None:
    return next((base for view, base in node.views if view == value), None)


def _shared(problem: Problem, node: Node, value: int, newest: dict[int, Copy], step: int) -> Block | None:
    """The memory that is there already in which the write comes to lie."""
    base = _base(node, value)
    if base is not None:
        return None if base == RESIDENT else newest[base].block
    viewed = {base for _, base in node.views}
    for over, read in node.overwrites:
        if over != value or read in viewed or problem.sizes[read] != problem.sizes[value] or newest[read].ends > step:
            continue
        block = newest[read].block
        assert block is not None
        alone = sum(copy.ends >= step for copy in block.copies) == 1
        if alone and not block.pinned and block.bytes == problem.sizes[value]:
            return block
    return None


def peak_of(problem: Problem, order: Sequence[int]) -> int:
    figures = replay(problem, order)
    assert figures is not None
    return max(figures[1], default=problem.resident)
