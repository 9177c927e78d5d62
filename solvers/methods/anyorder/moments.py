"""Moments before a node runs at which little else can be held: further pivots for the relaxation over all orders.

All that a node reads is in memory when it runs. One of these values was made last. While its maker ran, the others were
there, and what that one reads. From there backwards it is the same again. So whatever the order, one of a few computes
came before the node ran, and each of them takes more memory than the node does. Which one it was is not known. What all
of them have in common is put into the problem as a node of its own, a *moment*, which costs nothing: it takes the least
that any of them takes, and comes after what has run by then in all of them. Values that one of them may hold or make do
not count beside it.

Invariant: every legal order that fits, with moments put in where they were, fits the problem with moments, as far as
`beside` says what counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from solvers.clock import Clock
from solvers.methods.exact.cuts import SMALL
from solvers.orders.blocks import Blocks
from solvers.orders.bounds import Held, list_needs, needs
from solvers.pebbles.copies import needed
from solvers.problem import RESIDENT, Node, Problem

_STATES = 150  # sets of values looked at for one node
_NODES = 100  # that need most for themselves, of which moments are sought
_WIDE = 0.3  # share of the room that these need, at least
_KEPT = 8  # moments that take most
_STEP_MOVES = 8  # that take as long as a look at a step


@dataclass(frozen=True, slots=True)
class Moment:
    """`taken`: bytes, with all that is resident; `held`: values that are there whichever compute it was; `beside`:
    those that may be; `ran`: a bit for each node that has run by then."""

    node: int
    taken: int
    held: frozenset[int]
    beside: frozenset[int]
    ran: int


@dataclass(frozen=True, slots=True)
class WithMoments:
    """A problem with a moment before some of its nodes. `origin`: the number of each node without them, -1 for a
    moment; `beside`: values that do not count while a moment lasts."""

    problem: Problem
    origin: tuple[int, ...]
    beside: Mapping[int, frozenset[int]]

    def without(self, order: Sequence[int]) -> list[int]:
        """The order in the problem as it was."""
        return [self.origin[index] for index in order if self.origin[index] >= 0]

    def put_in(self, order: Sequence[int]) -> list[int]:
        """The order with each moment just before the first compute of its node."""
        number = {old: new for new, old in enumerate(self.origin) if old >= 0}
        found, seen = list[int](), set[int]()
        for old in order:
            new = number[old]
            if old not in seen and new and self.origin[new - 1] < 0:
                found.append(new - 1)
            seen.add(old)
            found.append(new)
        return found


def as_it_is(problem: Problem) -> WithMoments:
    return WithMoments(problem, tuple(range(len(problem.nodes))), {})


def with_moments(problem: Problem, budget: int, clock: Clock) -> WithMoments:
    """Moments of the nodes that need most for themselves, where a moment takes more than its node."""
    putting = _Putting(problem)
    for moment in list_moments(problem, budget, clock):
        putting.add(moment)
    return putting.result()


def list_moments(problem: Problem, budget: int, clock: Clock) -> list[Moment]:
    """Those that take most first; of several that take as much after as many nodes, one."""
    own = list_needs(problem)
    least = problem.resident + (budget - problem.resident) * _WIDE
    wide = [index for index, bytes_needed in enumerate(own) if bytes_needed >= least]
    search, found = _Search(problem, int(SMALL * budget)), dict[tuple[int, int], Moment]()
    for index in sorted(wide, key=lambda index: (-own[index], index))[:_NODES]:
        moment = search.run(index)
        if moment is not None and moment.taken > own[index]:
            found.setdefault((moment.taken, moment.ran.bit_count()), moment)
    clock.spend(moves=_STEP_MOVES * search.looked)
    return sorted(found.values(), key=lambda moment: (-moment.taken, moment.node))[:_KEPT]


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    """A node that may have made the last of some values: the bytes while it ran, and what was held before."""

    taken: int
    node: int
    after: tuple[int, ...]
    before: tuple[int, ...]


class _Search:
    """Backwards from what a node reads, the steps that take least first. Those not yet gone at any time are ones of
    which every order takes one."""

    def __init__(self, problem: Problem, ignored: int) -> None:
        self.problem = problem
        self.blocks = Blocks(problem)
        self.writer = problem.writers()
        self.needed = needed(problem, self.writer)
        self.looked = 0  # at steps
        roots, floor = self.blocks.root, self.blocks.floor
        self.large = {value for value, root in enumerate(roots) if root != RESIDENT and floor[value] > ignored}

    def run(self, index: int) -> Moment | None:
        """Where the least of the steps to choose from takes most."""
        start = tuple(sorted(self.large.intersection(self.problem.nodes[index].reads)))
        steps, best = list(self.steps(start)), list[_Step]()
        heapify(steps)
        seen = {start}
        while steps and len(seen) <= _STATES:
            if not best or steps[0].taken > best[0].taken:
                best = list(steps)
            before = heappop(steps).before
            if not before:
                break  # all was made of nothing
            if before not in seen:
                seen.add(before)
                for step in self.steps(before):
                    heappush(steps, step)
        return self.moment(index, best) if best else None

    def steps(self, held: tuple[int, ...]) -> Iterator[_Step]:
        after = Held(frozenset(held))
        for number in sorted({self.writer[value] for value in held}):
            node = self.problem.nodes[number]
            before = after.before(node)
            taken = needs(self.blocks, node, before, after)
            self.looked += 1
            yield _Step(taken, number, held, tuple(sorted(before.values & self.large)))

    def moment(self, index: int, steps: Sequence[_Step]) -> Moment:
        """What these steps have in common; the first takes least."""
        ran, held, beside = -1, set(steps[0].after), set[int]()
        for step in steps:
            node = self.problem.nodes[step.node]
            ran &= self.union(step.after)
            held &= set(step.after)
            beside.update(step.after, step.before, node.reads, node.writes)
        return Moment(index, steps[0].taken, frozenset(held), frozenset(beside), ran)

    def union(self, values: Sequence[int]) -> int:
        """The nodes that have run where these values are held."""
        ran = 0
        for value in values:
            ran |= self.needed[self.writer[value]]
        return ran


@dataclass(slots=True)
class _Putting:
    """Puts moments into a problem, each just before its node, which reads a value of no bytes that the moment writes.
    The moment reads such values of what has run by then."""

    problem: Problem
    sizes: list[int] = field(init=False)
    moments: dict[int, tuple[Moment, Node]] = field(default_factory=dict)
    more: dict[int, list[int]] = field(default_factory=dict)  # node -> values of no bytes that it writes besides
    needed: list[int] = field(init=False)
    writer: list[int] = field(init=False)
    blocks: Blocks = field(init=False)

    def __post_init__(self) -> None:
        self.sizes, self.writer = list(self.problem.sizes), self.problem.writers()
        self.blocks, self.needed = Blocks(self.problem), needed(self.problem, self.writer)

    def add(self, moment: Moment) -> None:
        reads, known = sorted(moment.held), 0
        for value in moment.held:
            known |= self.needed[self.writer[value]]
        for node in self._last_of(moment.ran & ~known):
            reads.append(self._nothing())
            self.more.setdefault(node, []).append(reads[-1])
        rest = moment.taken - self.problem.resident - self.blocks.held(moment.held)
        self.moments[moment.node] = moment, Node(0, tuple(reads), (self._nothing(),), workspace=max(0, rest))

    def _nothing(self) -> int:
        """A further value of no bytes."""
        self.sizes.append(0)
        return len(self.sizes) - 1

    def _last_of(self, nodes: int) -> Iterator[int]:
        """Of a set of nodes, those that no other of them needs."""
        while nodes:
            node = nodes.bit_length() - 1
            yield node
            nodes &= ~self.needed[node]

    def result(self) -> WithMoments:
        nodes, origin, beside = list[Node](), list[int](), dict[int, frozenset[int]]()
        for index, node in enumerate(self.problem.nodes):
            reads, writes = node.reads, (*node.writes, *self.more.get(index, ()))
            if index in self.moments:
                moment, put_in = self.moments[index]
                beside[len(nodes)] = moment.beside
                nodes.append(put_in)
                origin.append(-1)
                reads = (*reads, *put_in.writes)
            nodes.append(replace(node, reads=reads, writes=writes))
            origin.append(index)
        return WithMoments(replace(self.problem, nodes=tuple(nodes), sizes=tuple(self.sizes)), tuple(origin), beside)
