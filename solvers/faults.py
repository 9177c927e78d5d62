"""What a sound problem is, said once: for problems that are read, loaded or made by a reduction.

Invariant: a problem of which `faults` says nothing can be scheduled by running its nodes in the order given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from solvers.problem import MOST_IN_ALL, RESIDENT, Node, Problem


def faults(problem: Problem, nodes: Sequence[str] = (), values: Sequence[str] = ()) -> Iterator[str]:
    """Everything wrong with a problem, in words; nothing for one that can be scheduled.

    `nodes`, `values`: what they are called; by default their numbers.
    """
    written: dict[int, int] = {}
    for value, size in enumerate(problem.sizes):
        if size < 0:
            yield f"{_value(value, values)} has a negative size: {size}"
    for index, node in enumerate(problem.nodes):
        for wrong in _faults_alone(node, len(problem.sizes), values):
            yield f"{_node(index, nodes)}: {wrong}"
        for value in node.reads:
            if value not in written:
                reads = f"{_node(index, nodes)} reads {_value(value, values)}"
                yield f"{reads} before any node writes it; put it after its writer"
        for value in node.writes:
            if value in written:
                other = _node(written[value], nodes)
                yield f"{_node(index, nodes)} writes {_value(value, values)}, which {other} writes too"
        written.update(dict.fromkeys(node.writes, index))
    yield from _faults_of_updates(problem, nodes, values)
    if len(set(problem.outputs)) < len(problem.outputs):
        yield "outputs names a value twice"
    for place, found in (("outputs", problem.outputs), ("optional", problem.optional), ("inner", problem.inner)):
        for value in sorted(found):
            if value not in written:
                yield f"{place} names {_value(value, values)}, which no node writes"
    if problem.resident < 0:
        yield f"the resident size is negative: {problem.resident}"
    if problem.resident + sum(problem.sizes) + sum(node.workspace for node in problem.nodes) > MOST_IN_ALL:
        yield f"all sizes together are more than {MOST_IN_ALL} bytes"
    if sum(node.cost for node in problem.nodes) > MOST_IN_ALL:
        yield f"all costs together are more than {MOST_IN_ALL}"


def _faults_alone(node: Node, count: int, values: Sequence[str]) -> Iterator[str]:
    """What is wrong with a node by itself."""
    if node.cost < 0 or node.workspace < 0 or min(node.early, default=0) < 0:
        yield "its cost or workspace is negative"
    for value in (*node.reads, *node.writes):
        if not 0 <= value < count:
            yield f"it touches value {value}, which does not exist"
    if len(set(node.writes)) < len(node.writes):
        yield "writes names a value twice"
    for place, pairs in (("views", node.views), ("overwrites", node.overwrites)):
        for write, read in pairs:
            resident = read == RESIDENT and place == "views"
            if write not in node.writes or (read not in node.reads and not resident):
                base = "an input or weight" if read == RESIDENT else _value(read, values)
                yield f"{place} pairs {_value(write, values)} with {base}; it does not write the one and read the other"
    if any(number < 0 or size < 0 for number, size in node.takes):
        yield "takes names an input or weight by a negative number or size"


def _faults_of_updates(problem: Problem, nodes: Sequence[str], values: Sequence[str]) -> Iterator[str]:
    """What is wrong with writes that take the place of inputs."""
    replaced: set[int] = set()
    for index, node in enumerate(problem.nodes):
        if not node.updates:
            continue
        name = _node(index, nodes)
        if not node.once:
            yield f"{name} updates an input, and may run more than once; say that it runs once"
        for write, number in node.updates:
            if write not in node.writes:
                yield f"{name}: updates names {_value(write, values)}, which it does not write"
            elif problem.sizes[write]:
                yield f"{_value(write, values)} lies in the place of an input, and so has no bytes of its own"
            elif write not in problem.outputs:
                yield f"{_value(write, values)} lies in the place of an input, and is no output"
            if number in replaced:
                yield f"{name} updates input {number}, which is updated already"
            replaced.add(number)
    for index, readers in problem.waits().items():
        if (late := max(readers, default=-1)) > index:
            update = _node(index, nodes)
            yield f"{_node(late, nodes)} reads an input as it was, and {update}, which updates it, stands before it"


def _node(index: int, names: Sequence[str]) -> str:
    return f"node {names[index]!r}" if names else f"node {index}"


def _value(value: int, names: Sequence[str]) -> str:
    return f"value {names[value]!r}" if 0 <= value < len(names) else f"value {value}"


def sound(problem: Problem, stage: str) -> Problem:
    """The problem itself, once `faults` has found nothing in what `stage` made; anything else is our bug."""
    wrong = next(faults(problem), None)
    assert wrong is None, f"{stage}: {wrong}"
    return problem
