"""Memory traffic as a cost: bytes read and written when neighbours that can be fused share a kernel.

Yu and He, Lemma 3.5 and Theorem 3.6: a group reads each value from outside once, and writes each value that is used
outside once; what stays inside costs nothing. Invariant: counted on the computes of an order, each with its own copies;
forward and backward are fused apart, as they are compiled apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from solvers.methods.mincut.groups import Groups, fused
from solvers.methods.mincut.tangents import tangents
from solvers.problem import RESIDENT, Kind, Node, Problem

FUSIBLE = {Kind.POINTWISE, Kind.REDUCTION, Kind.VIEW}
TAKEN = -1  # in place of the compute that makes an input or a weight
Copy = tuple[int, int]  # the index of its compute, and the value; (TAKEN, number) for an input or a weight


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes moved, and the kernels that move them."""

    read: int
    written: int
    kernels: int

    @property
    def total(self) -> int:
        return self.read + self.written


@dataclass(frozen=True, slots=True)
class Runs:
    """An order's computes, without views: the copies that each reads and makes."""

    nodes: tuple[int, ...]
    reads: tuple[tuple[Copy, ...], ...]
    makes: tuple[tuple[Copy, ...], ...]
    steps: tuple[int, ...]  # the index of each in the order
    bytes: dict[Copy, int]
    outputs: frozenset[Copy]
    seam: int  # where the backward pass begins, with the recomputations for it

    def sources(self, run: int) -> list[int]:
        """The computes whose copies a compute reads."""
        return sorted({maker for maker, _ in self.reads[run] if maker != TAKEN})


def traffic_of(problem: Problem, order: Sequence[int], fusion: str = "ideal") -> Traffic:
    """The bytes that an order moves. `fusion`: ideal, runtime (the runtime's observed fusions) or none."""
    return traffics_of(problem, order, (fusion,))[0]


def traffics_of(problem: Problem, order: Sequence[int], fusions: Sequence[str]) -> list[Traffic]:
    """The same for each of several fusions."""
    runs = runs_of(problem, order)
    return [count(runs, groups_of(problem, runs, fusion)) for fusion in fusions]


def count(runs: Runs, groups: Groups) -> Traffic:
    group_of = {run: number for number, members in enumerate(groups) for run in members}
    read: set[tuple[int, Copy]] = set()
    written = set(runs.outputs)
    for run, copies in enumerate(runs.reads):
        for copy in copies:
            if copy[0] == TAKEN or group_of[copy[0]] != group_of[run]:
                read.add((group_of[run], copy))
                written.add(copy)
    moved = sum(runs.bytes[copy] for copy in written if copy[0] != TAKEN)
    return Traffic(sum(runs.bytes[copy] for _, copy in read), moved, len(groups))


def groups_of(problem: Problem, runs: Runs, fusion: str) -> Groups:
    fuses = FUSION[fusion]
    if fuses is _never:
        return [[run] for run in range(len(runs.nodes))]

    def same_kernel(first: int, second: int) -> bool:
        if (first < runs.seam) != (second < runs.seam):
            return False
        return fuses(problem.nodes[runs.nodes[first]], problem.nodes[runs.nodes[second]])

    return fused([runs.sources(run) for run in range(len(runs.nodes))], same_kernel)


def _ideal(first: Node, second: Node) -> bool:
    ends = first.kind in FUSIBLE or first.kind is Kind.EPILOGUE
    return second.kind is Kind.CONCAT or (ends and second.kind in FUSIBLE)


def _as_seen(first: Node, second: Node) -> bool:
    return first.fused == second.fused != -1


def _never(first: Node, second: Node) -> bool:
    return False


FUSION: dict[str, Callable[[Node, Node], bool]] = {"ideal": _ideal, "runtime": _as_seen, "none": _never}


def runs_of(problem: Problem, order: Sequence[int]) -> Runs:
    newest: dict[int, tuple[Copy, ...]] = {}  # value -> its copy; for a view, the copy of its base
    nodes: list[int] = []
    reads: list[tuple[Copy, ...]] = []
    makes: list[tuple[Copy, ...]] = []
    steps: list[int] = []
    bytes_: dict[Copy, int] = {}
    for step, index in enumerate(order):
        node = problem.nodes[index]
        taken = [(TAKEN, number) for number, _ in node.takes]
        bytes_.update({(TAKEN, number): size for number, size in node.takes})
        seen = tuple(dict.fromkeys([*(copy for value in node.reads for copy in newest[value]), *taken]))
        if _only_looks(node):
            newest.update(dict.fromkeys(node.writes, seen))
            continue
        run = len(nodes)
        for value in node.writes:
            bytes_[run, value] = problem.sizes[value]
            newest[value] = ((run, value),)
        nodes.append(index)
        reads.append(seen)
        makes.append(tuple((run, value) for value in node.writes))
        steps.append(step)
    outputs = frozenset(copy for value in problem.outputs for copy in newest[value] if copy[0] != TAKEN)
    follows = tangents(problem)
    seam = seam_of([(index, problem.nodes[index].backward, follows[index]) for index in nodes])
    return Runs(tuple(nodes), tuple(reads), tuple(makes), tuple(steps), bytes_, outputs, seam)


def seam_of(ran: Sequence[tuple[Hashable, bool, bool]]) -> int:
    """Where the backward pass begins: after the last new forward op before any gradient is there.

    `ran`: for each compute its op, whether it is backward, and whether it needs a gradient. Recomputations just before
    the first such compute belong to the backward pass; its own ops may run earlier, to be saved.
    """
    begins = next((place for place, (_, _, follows) in enumerate(ran) if follows), len(ran))
    first: dict[Hashable, int] = {}
    for place, (op, backward, _) in enumerate(ran[:begins]):
        if not backward:
            first.setdefault(op, place)
    return max(first.values(), default=-1) + 1


def _only_looks(node: Node) -> bool:
    """Whether the op only gives what it reads another shape."""
    viewed = {write for write, _ in node.views}
    based = {read for _, read in node.views if read != RESIDENT}
    return node.kind is Kind.VIEW and viewed == set(node.writes) and based == set(node.reads)
