"""Random problems with everything in them that a Problem can say.

Invariant: `faults` finds nothing in any of them, and one seed gives one problem on every machine.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from solvers.faults import faults
from solvers.problem import RESIDENT, Node, Problem
from solvers.updates import in_time

_SIZES = (0, 1, 1, 2, 2, 3, 4, 6, 16)
_COSTS = (0, 1, 1, 2, 3, 5, 9)


def random_problem(random: Random, count: int, most_values: int = 1 << 30) -> Problem:
    """`most_values`: after that many, nodes write one value or none."""
    maker = _Maker(random, most_values)
    for _ in range(count):
        maker.add()
    return maker.problem()


class _Maker:
    """Adds one node after the other; each problem has a taste of its own in what its nodes do."""

    def __init__(self, random: Random, most_values: int) -> None:
        self.random = random
        self.most_values = most_values
        self.nodes: list[Node] = []
        self.sizes: list[int] = []
        self.large = random.choice((1, 1, 1, 1 << 10, (1 << 33) + 1))
        self.dear = random.choice((1, 1, 1, 1000, 1 << 33))
        self.views, self.overwrites = random.choice((0.0, 0.2, 0.5)), random.choice((0.0, 0.4, 0.8))
        self.once, self.optional = random.choice((0.0, 0.0, 0.1, 0.3)), random.choice((0.0, 0.1, 0.5))
        self.workspace = random.choice((0.0, 0.3))
        self.back = random.choice((2, 4, 100))
        self.inputs = random.choice((0, 0, 1, 2, 3))  # that nodes read, and that some are written in the place of

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def add(self) -> None:
        reads = self.some_reads()
        many = self.random.choice((0, 1, 1, 1, 1, 1, 1, 2, 2, 3))
        many = max(0, min(many, self.most_values - len(self.sizes)))
        writes = tuple(range(len(self.sizes), len(self.sizes) + many))
        self.sizes += [self.large * self.random.choice(_SIZES) for _ in writes]
        bare = bool(writes) and self.chance(self.views)  # a view and nothing but a view
        if bare:
            reads = reads[: self.random.choice((0, 1, 1, 1, 1, 2))]
        views = self.shared(reads, writes, 1.0 if bare else self.views / 4, (RESIDENT,))
        overwrites = () if bare else self.shared(reads, writes, self.overwrites, ())
        workspace = self.large * self.random.randint(1, 4) if not bare and self.chance(self.workspace) else 0
        early = (workspace - workspace // 2, workspace // 2) if workspace and self.chance(0.3) else ()
        cost = 0 if bare and self.chance(0.7) else self.dear * self.random.choice(_COSTS)
        again = reads[:1] if self.chance(0.05) else ()
        takes = tuple((number, 1) for number in range(self.inputs) if self.chance(0.3))
        if any(base == RESIDENT for _, base in views):
            takes = (*takes, (self.inputs, 1))
        self.nodes.append(
            Node(
                cost,
                (*reads, *again),
                writes,
                workspace,
                self.chance(self.once),
                views,
                overwrites,
                backward=self.chance(0.3),
                fused=self.random.choice((-1, -1, 0, 1)),
                takes=takes,
                early=early,
            )
        )

    def some_reads(self) -> tuple[int, ...]:
        recent = range(max(0, len(self.sizes) - self.back), len(self.sizes))
        many = self.random.choice((0, 1, 1, 1, 2, 2, 3))
        return tuple(self.random.sample(recent, min(many, len(recent))))

    def shared(
        self, reads: tuple[int, ...], writes: tuple[int, ...], share: float, others: tuple[int, ...]
    ) -> tuple[tuple[int, int], ...]:
        """(write, read) pairs, mostly of one size."""
        pairs = []
        for write in writes:
            sources = [read for read in (*reads, *others) if self.chance(0.6)] or [*reads, *others]
            if not sources or not self.chance(share):
                continue
            self.random.shuffle(sources)
            pairs += [(write, read) for read in sources[: self.random.choice((1, 1, 1, 2))]]
            if pairs[-1][1] != RESIDENT and self.chance(0.9):
                self.sizes[write] = self.sizes[pairs[-1][1]]
        return tuple(pairs)

    def update(self) -> set[int]:
        """Let writes take the places of inputs, where the order given allows it; which they are."""
        updated: set[int] = set()
        for number in range(self.inputs):
            index = self.random.randrange(len(self.nodes))
            node = self.nodes[index]
            if not node.writes:
                continue
            write = self.random.choice(node.writes)
            changed = replace(node, once=True, updates=(*node.updates, (write, number)))
            nodes = [*self.nodes[:index], changed, *self.nodes[index + 1 :]]
            sizes = [0 if value == write else size for value, size in enumerate(self.sizes)]
            if write not in updated and not any(faults(Problem(tuple(nodes), tuple(sizes), (*sorted(updated), write)))):
                self.nodes, self.sizes = nodes, sizes
                updated.add(write)
        return updated

    def problem(self) -> Problem:
        updated = self.update()
        values = range(len(self.sizes))
        read = {value for node in self.nodes for value in node.reads}
        outputs = [value for value in values if self.chance(0.6 if value not in read else 0.1) or value in updated]
        return Problem(
            nodes=tuple(self.nodes),
            sizes=tuple(self.sizes),
            outputs=tuple(outputs),
            resident=self.large * self.random.choice((0, 0, 5)),
            optional=frozenset(value for value in values if self.chance(self.optional)),
            unread_stay=self.chance(0.5),
            inner=frozenset(value for value in values if self.inner(value)),
        )

    def inner(self, value: int) -> bool:
        return self.back == 2 and self.large == 1 and self.chance(0.15)


def random_order(random: Random, problem: Problem, extra: int) -> tuple[int, ...]:
    """A legal order: each node once as given, and some again wherever they may run."""
    return in_time(problem, hasty_order(random, problem, extra))


def hasty_order(random: Random, problem: Problem, extra: int) -> tuple[int, ...]:
    """The same, in which an update of an input may come before what reads the input as it was."""
    order = list(range(len(problem.nodes)))
    repeatable = [index for index, node in enumerate(problem.nodes) if not node.once]
    for _ in range(extra if repeatable else 0):
        index = random.choice(repeatable)
        order.insert(random.randint(order.index(index) + 1, len(order)), index)
    return tuple(order)
