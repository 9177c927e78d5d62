"""Values that need not be kept once the one node that reads them has first run: its results take no more room.

A value v is passing if it is no view, a single node b reads it, b reads nothing else that takes room, and what b writes
is no larger than v. Sketch of a proof that no relaxation needs S(g, v) after b's first compute: take any schedule and
any copy of v that is held for later runs of b. If the copy was made before b first ran, b's results have been there
ever since that, and can be held in v's place, instead of the later runs. If it was made after, run b at once, once, and
hold what it writes in v's place. Either way no node runs more often, and across every first compute, and whenever any
other node runs, no more is held than before. (What b's own moved run needs is not looked at, so that no row may speak
of that.)

Invariant: `advance` does just this to an order; what it returns counts for the relaxation only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from solvers.problem import Problem


def replaceable_values(problem: Problem, free: Set[int]) -> dict[int, int]:
    """Each passing value, and the node that reads it."""
    readers, special = problem.readers(), {*problem.outputs, *problem.optional, *free}
    special.update(write for node in problem.nodes for write, _ in node.views)
    return {
        value: readers[value][0]
        for value in range(len(problem.sizes))
        if value not in special
        and len(set(readers[value])) == 1
        and _passes(problem, value, readers[value][0], free, special)
    }


def _passes(problem: Problem, value: int, reader: int, free: Set[int], special: Set[int]) -> bool:
    """`special`: outputs, optional and free values."""
    node = problem.nodes[reader]
    writes = [write for write in node.writes if write not in free]
    return (
        not (node.once or node.views or special & {*writes})
        and bool(writes)
        and all(read == value or read in free for read in node.reads)
        and sum(problem.sizes[write] for write in writes) <= problem.sizes[value]
    )


def advance(problem: Problem, passing: Mapping[int, int], order: Sequence[int]) -> list[int]:
    """The order with each repeat of a passing value's reader left out or moved to where the value is made."""
    moved, gone = _repeats(problem, passing, order)
    left_out = gone.union(*moved.values())
    found: list[int] = []
    stack: list[list[int]] = []
    for step in range(len(order)):
        if step in left_out:
            continue
        stack.append([step])
        while stack:
            steps = stack.pop()
            found.append(order[steps[0]])
            later: defaultdict[int, list[int]] = defaultdict(list)
            for repeat in (repeat for run in steps for repeat in moved.get(run, ())):
                later[order[repeat]].append(repeat)
            stack += later.values()
    return found


def _repeats(
    problem: Problem, passing: Mapping[int, int], order: Sequence[int]
) -> tuple[dict[int, list[int]], set[int]]:
    """Repeats to be moved, by the step that makes what they read, and those to be left out."""
    reads = {reader: value for value, reader in passing.items()}
    first: dict[int, int] = {}
    made: dict[int, int] = {}  # value -> the step of its copy at hand
    moved: dict[int, list[int]] = {}
    gone: set[int] = set()
    for step, index in enumerate(order):
        if first.setdefault(index, step) != step and index in reads:
            copy = made[reads[index]]
            if copy in gone or copy < first[index]:
                gone.add(step)
            else:
                moved.setdefault(copy, []).append(step)
        made.update(dict.fromkeys(problem.nodes[index].writes, step))
    return moved, gone
