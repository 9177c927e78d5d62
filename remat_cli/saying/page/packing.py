"""A plan as the numbers that its page is drawn from; `data.js` unpacks them.

Values are numbered in the order in which they are written. Each name is stored as the number of letters that it shares
with the name before it, and the rest. So an op's name stands before those of its values. Numbers are stored as
differences where those are smaller.

Invariant: the packed plan says all that the page shows, and holds nothing but numbers and names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from remat_cli.plans.roles import Role
from remat_cli.plans.timeline import Timeline
from remat_cli.saying.showing import Shown
from solvers.plan import Allocate, Compute, Deallocate, Statement

# kinds of statements: allocate a value's own size, nothing, or another value's place; compute an op; free a value
FULL, EMPTY, SHARED, COMPUTE, FREE = range(5)

Numbers = Mapping[int, int]  # value -> its number on the page


def pack(found: Shown) -> dict[str, Any]:
    """All that the page's script reads of a plan."""
    subject, problem = found.subject, found.subject.problem
    roles, nodes = list(Role), problem.nodes
    written = [value for node in nodes for value in node.writes]
    numbers = {value: number for number, value in enumerate(written)}
    old, new = found.lines
    return {
        "names": _names(_in_turn(found)),
        "writes": [len(node.writes) for node in nodes],
        "sizes": [problem.sizes[value] for value in written],
        "cost": [node.cost for node in nodes],
        "work": [node.workspace for node in nodes],
        "backward": _digits(node in new.late for node in range(len(nodes))),
        "views": _digits(bool(node.views) for node in nodes),
        "roles": [role.value for role in roles],
        "kinds": _digits(roles.index(found.parts.values[value]) for value in written),
        "fixed": [found.parts.fixed.get(role, 0) for role in roles],
        "timed": subject.graph is not None,
        "budget": found.recorded.budget if found.recorded else None,
        "before": _line(old, numbers) if found.recorded else None,
        "after": _line(new, numbers),
        "statements": list(_flat(found.plan.statements, numbers)),
    }


def _digits(each: Iterable[int]) -> str:
    return "".join(str(int(number)) for number in each)


def _in_turn(found: Shown) -> Iterator[str]:
    """The name of each op, followed by the names of the values that it writes."""
    subject = found.subject
    for name, node in zip(subject.nodes, subject.problem.nodes, strict=True):
        yield name
        yield from (subject.values[value] for value in node.writes)


def _names(names: Iterable[str]) -> dict[str, list[Any]]:
    """For each name the number of letters that it shares with the one before it, and the rest. Letters are UTF-16
    units, as browsers count them."""
    shared, rests, last = list[int](), list[str](), ""
    for name in names:
        begins = name[: next((place for place, one in enumerate(name) if last[place : place + 1] != one), len(name))]
        shared.append(len(begins.encode("utf-16-le", "surrogatepass")) // 2)
        rests.append(name[len(begins) :])
        last = name
    return {"shared": shared, "rests": rests}


def _line(line: Timeline, numbers: Numbers) -> dict[str, Any]:
    """The order of computes (none if it is the file's own), and the blocks by the step at which they begin."""
    blocks = sorted(line.blocks, key=lambda block: (block.start, numbers[block.value]))
    begins = [0, *(block.start for block in blocks)]
    return {
        "order": None if line.order == tuple(range(len(line.problem.nodes))) else list(line.order),
        "values": [numbers[block.value] for block in blocks],
        "begins": [later - earlier for earlier, later in pairwise(begins)],
        "lasts": [block.end - block.start for block in blocks],
    }


def _flat(statements: Iterable[Statement], numbers: Numbers) -> Iterator[int | None]:
    """The program as numbers; a register is the number of allocations since its own."""
    latest = 0
    for statement in statements:
        match statement:
            case Allocate(value, register, size, shares):
                yield from (
                    SHARED if shares is not None else FULL if size else EMPTY,
                    numbers[value],
                    register - latest,
                )
                if shares is not None:
                    yield register - shares
                latest = register
            case Compute(node, registers):
                yield from (COMPUTE, node, len(registers))
                yield from (None if register is None else latest - register for register in registers)
            case Deallocate(register):
                yield from (FREE, latest - register)
