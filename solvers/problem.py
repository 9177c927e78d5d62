"""The vocabulary: what is asked of a solver, and what it answers. Integers only: indices, bytes, nanoseconds.

Invariant: a Problem in which `faults` finds nothing can be scheduled by running its nodes in the order given.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated

from solvers.clock import Clock
from solvers.ledger import Part
from solvers.notes import Note

MOST_IN_ALL = 2**56  # bytes, and nanoseconds, of a whole problem: what is reckoned from them fits in 64 bits
RESIDENT = -1  # stands for the base of a view whose base is an input or a weight, and so always there
Value = Annotated[int, "an index into `Problem.sizes`"]  # which numbers are values is said once, for files as well
Base = Annotated[int, "a value, or RESIDENT"]


class Kind(Enum):
    """How an op can share a kernel with its neighbours; only the minimum cut and the traffic model ask."""

    OPAQUE = "opaque"  # a kernel of its own, cheap or unknown
    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    CONCAT = "concat"
    COMPUTE = "compute"  # compute-bound: matrix products, convolutions
    EPILOGUE = "epilogue"  # compute-bound, and what the kernel ends with can be fused with its readers
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Node:
    """One op. Values are indices into `Problem.sizes`; a node may write several, each freed on its own."""

    cost: int
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    workspace: int = 0  # held only while the node runs
    once: bool = False  # random, or with an effect: never computed twice
    views: tuple[tuple[Value, Base], ...] = ()  # (write, read or RESIDENT): the write is a view of the read
    overwrites: tuple[tuple[Value, Value], ...] = ()  # (write, read): takes its place if this is the read's last use
    backward: bool = False
    kind: Kind = Kind.OPAQUE
    takes: tuple[tuple[int, int], ...] = ()  # (number, bytes) of the inputs and weights it reads
    fused: int = -1  # ops of one number share a kernel, as the runtime was seen to fuse them; -1: has its own
    early: tuple[int, ...] = ()  # the pieces of the workspace, if they are taken before the writes have their places
    updates: tuple[tuple[Value, int], ...] = ()  # (write, number of an input): the write takes the place of that input

    def base(self, write: Value) -> Base | None:
        """What the write is a view of: a read, RESIDENT, or None for no view. Of several listed, the first counts.

        A view lives in its base's block of memory for as long as it is held, whatever becomes of the base; one of
        RESIDENT in a block of no bytes that nothing may overwrite. An output's last copy is never a view.
        """
        for view, base in self.views:  # a generator takes twice as long, and this is asked for every allocation
            if view == write:
                return base
        return None

    def may_overwrite(self, write: Value, sizes: Sequence[int]) -> tuple[Value, ...]:
        """The reads whose place the write may take: if the read ends there, alone in a block of just that size.

        Never that of which a write of this same node is a view: that memory goes on being looked at.
        """
        if not self.overwrites or self.base(write) is not None:
            return ()
        viewed = {base for _, base in self.views}
        return tuple(r for w, r in self.overwrites if w == write and sizes[r] == sizes[w] and r not in viewed)

    def sharing(self) -> frozenset[Value]:
        """The writes that may live in memory which is there already."""
        return frozenset(write for write, _ in (*self.views, *self.overwrites))


@dataclass(frozen=True, slots=True)
class Problem:
    """Nodes stand in an order in which each could run; `outputs` are in memory at the end."""

    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]
    outputs: tuple[Value, ...]
    resident: int = 0  # inputs and weights: always there, counted in every peak
    optional: frozenset[Value] = frozenset()  # writes a compute may leave out when nobody reads that copy
    unread_stay: bool = False  # the runtime never frees an own copy that nobody reads (unless it was left out)
    inner: frozenset[Value] = frozenset()  # values within a fused kernel: each copy is for one run of its readers

    def end(self) -> Node:
        """The end as if it were an op: it reads the outputs."""
        return Node(0, tuple(sorted(set(self.outputs))), ())

    def ended(self) -> Problem:
        """The same with the end as its last node."""
        return replace(self, nodes=(*self.nodes, self.end()))

    def writers(self) -> list[int]:
        """The node that writes each value."""
        writer = [-1] * len(self.sizes)
        for index, node in enumerate(self.nodes):
            for value in node.writes:
                writer[value] = index
        return writer

    def makers(self, wanted: Iterable[Value], there: Container[Value], writer: Sequence[int]) -> set[int]:
        """The nodes that must run before the wanted values are all there, if some are already."""
        found: set[int] = set()
        waiting = [value for value in wanted if value not in there]
        while waiting:
            index = writer[waiting.pop()]
            if index not in found:
                found.add(index)
                waiting += [value for value in self.nodes[index].reads if value not in there]
        return found

    def waits(self) -> dict[int, frozenset[int]]:
        """For each node that updates inputs: the others that read them as they were, by themselves or through views.

        An update is written into the memory of its input, so every compute of those nodes, repeats among them, comes
        before it. As that memory is resident, the update has no bytes of its own, and is there to the end.
        """
        if not any(node.updates for node in self.nodes):
            return {}
        readers: dict[int, set[int]] = {}
        behind: dict[int | None, set[int]] = {}  # value -> the inputs in whose memory it may lie
        for index, node in enumerate(self.nodes):
            taken = {number for number, _ in node.takes}.union(*(behind.get(value, ()) for value in node.reads))
            for number in taken:
                readers.setdefault(number, set()).add(index)
            for write in set(node.writes).difference(write for write, _ in node.updates):
                if (base := node.base(write)) == RESIDENT or base in behind:
                    behind[write] = taken
        return {
            index: frozenset().union(*(readers.get(number, ()) for _, number in node.updates)) - {index}
            for index, node in enumerate(self.nodes)
            if node.updates
        }

    def readers(self) -> list[list[int]]:
        """The nodes that read each value, in order."""
        found: list[list[int]] = [[] for _ in self.sizes]
        for index, node in enumerate(self.nodes):
            for value in dict.fromkeys(node.reads):
                found[value].append(index)
        return found


@dataclass(frozen=True, slots=True)
class Progress:
    """What an anytime solver knows so far; `order` only when it is better than the last one reported."""

    seconds: float
    cost: int | None = None
    bound: float | None = None
    order: tuple[int, ...] | None = None
    doing: str = ""  # what goes on, where it is not the search
    by: str = ""  # the part of the search that found the order


def _nobody_listens(_: Progress) -> None:
    return None


# Makes an order fit where it is to run, a step at a time, whose work counts on the clock. It comes to that order, to
# another that it led to, or to None; a step says whether an order that fits is known.
Fit = Callable[[tuple[int, ...], Clock], Generator[bool, None, tuple[int, ...] | None]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how well; `report` hears of progress. `fit`: None where whatever keeps to the budget fits."""

    clock: Clock = field(default_factory=Clock)
    gap: float = 0.001
    seed: int = 0
    report: Callable[[Progress], None] = _nobody_listens
    verbose: bool = False  # let SCIP write its log on stderr
    fit: Fit | None = None

    def silent(self) -> Limits:
        """The same limits, of which nobody hears."""
        return replace(self, report=_nobody_listens)

    def share(self, part: float) -> Limits:
        """From now on for that part of the time that is left."""
        return replace(self, clock=self.clock.share(part))

    def within(self, seconds: float) -> Limits:
        """From now on for so many seconds, or for what is left if that is less."""
        return replace(self, clock=self.clock.within(seconds))


@dataclass(frozen=True, slots=True)
class Enough:
    """A search may end with a plan that costs no more than `cost`, or with a bound above `bound`."""

    cost: float | None = None
    bound: float | None = None

    def __call__(self, known: Progress) -> bool:
        cheap = self.cost is not None and known.cost is not None and known.cost <= self.cost
        return cheap or (self.bound is not None and known.bound is not None and known.bound > self.bound)

    def within(self, limits: Limits) -> Limits:
        """These limits, of which nobody hears, but a search ends as soon as that is so."""
        met: list[bool] = []
        return replace(limits, report=lambda known: met.append(self(known)), clock=limits.clock.until(lambda: any(met)))


class Status(Enum):
    OPTIMAL = "optimal"
    ORDER_OPTIMAL = "optimal in this order"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"

    @property
    def found(self) -> bool:
        """Whether there is a schedule that fits."""
        return self in (Status.OPTIMAL, Status.ORDER_OPTIMAL, Status.FEASIBLE)


@dataclass(frozen=True, slots=True)
class Grounds:
    """Where the proof of a cost bound looked, for a certificate to look as well: nothing that need be believed.

    `order`: of the first computes that the bound is for; empty: any. `pivots`: nodes at whose first compute memory was
    looked at, in the order in which they come; `peaks`: (how many pivots came before, node) looked at besides.
    """

    budget: int
    order: tuple[int, ...]
    pivots: tuple[int, ...]
    peaks: tuple[tuple[int, int], ...] = ()

    def renamed(self, node_of: Callable[[int], int]) -> Grounds:
        """The same of a problem in which nodes have other numbers."""
        order, pivots = tuple(map(node_of, self.order)), tuple(map(node_of, self.pivots))
        return Grounds(self.budget, order, pivots, tuple((group, node_of(node)) for group, node in self.peaks))


@dataclass(frozen=True, slots=True)
class Impossible:
    """The proof that nothing fits a budget: every schedule holds `least` bytes, which are more.

    `in_order`: every schedule that first computes the nodes in the order given; nothing is proved of others.
    """

    budget: int
    least: int
    in_order: bool = False

    def __post_init__(self) -> None:
        if self.least <= self.budget:
            raise ValueError(f"schedules of {self.least} bytes may fit {self.budget}")


@dataclass(frozen=True, slots=True)
class Result:
    """An order of computes, repeats allowed; its cost and peak are for `simulate` to say.

    OPTIMAL, ORDER_OPTIMAL and FEASIBLE: `order` fits the budget. INFEASIBLE and UNKNOWN: `order`, if any, is the one of
    least peak that was found. INFEASIBLE comes with its proof, `impossible`, and only so.

    `bound`: what no schedule in the class that `notes` names can cost less than, which ORDER_OPTIMAL meets;
    `bound_any_order`: what no schedule at all can, which OPTIMAL meets.
    """

    status: Status
    order: tuple[int, ...] | None
    bound: float | None = None
    notes: tuple[Note, ...] = ()
    peak_bound: int | None = None  # no schedule can have a lower peak
    peak_node: int | None = None  # while it runs that much is needed; None at the end, for the outputs
    peak_values: tuple[int, ...] = ()  # what it reads and writes
    bound_any_order: float | None = None
    grounds: tuple[Grounds, ...] = ()  # of the bounds
    patience_lost: bool = False  # the search ended though neither a proof nor a limit ended it
    impossible: Impossible | None = None
    lean: tuple[int, ...] | None = None  # the order of `find_lean`, if that was asked on the way
    found_by: str = ""  # the part of the search that found the order
    bound_by: str = ""  # and the one that raised the bound for all orders last
    parts: tuple[Part, ...] = field(default=(), compare=False)  # what each took and won

    def __post_init__(self) -> None:
        if (self.status is Status.INFEASIBLE) != (self.impossible is not None):
            raise ValueError(f"{self.status.value} with {self.impossible}: only a proof makes a budget impossible")

    @property
    def needed(self) -> int | None:
        """The bytes that every schedule is proved to hold, whatever its order."""
        if self.impossible is None or self.impossible.in_order:
            return self.peak_bound
        return max(self.impossible.least, self.peak_bound or 0)

    def refuted(self, proof: Impossible) -> Result:
        """The result without a plan, because there is none."""
        return replace(self, status=Status.INFEASIBLE, impossible=proof)

    def without_plan(self) -> Result:
        """The result without a plan, of which nothing is proved to be impossible."""
        return replace(self, status=Status.UNKNOWN, impossible=None)


Solver = Callable[[Problem, int, Limits], Result]
