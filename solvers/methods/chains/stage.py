"""One stage of a graph: which of its nodes run in its forward and in its backward, and what that takes.

Invariant: memory is counted beyond what crosses into the stage and beyond pinned values; a write takes the place of a
read only where nothing outside the stage holds it, so what is found is never less than what the runtime needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from solvers.methods.chains.from_graph import Stage, Stages
from solvers.problem import Problem


@dataclass(frozen=True, slots=True)
class StageWay:
    """One way to run a stage: `keep` is held from its forward to its backward, which computes what is missing."""

    keep: frozenset[int]
    time: int  # the time of its forward and its backward together
    kept: int  # the bytes of `keep`
    holds: bool  # whether its output is in `keep`
    loose: bool  # whether its backward does not read its input
    forward: int  # bytes while the forward runs
    backward: int  # bytes while the backward runs, gradients of the other stages included


class Runner:
    """Lists the nodes to run for one stage."""

    def __init__(self, stages: Stages, number: int) -> None:
        self.problem: Problem = stages.problem
        self.stage: Stage = stages.stages[number - 1]
        self.pinned = stages.pinned
        self.outputs = stages.outputs
        self.given = stages.pinned | self.stage.input
        self.output = self.stage.output - self.given  # the values of its output that the stage writes itself
        # backwards by what is kept, because they are asked for many times
        self.known: dict[frozenset[int], tuple[int, ...]] = {}
        self.writer = {value: index for index in self.stage.forward for value in self.problem.nodes[index].writes}

    @cached_property
    def unavoidable(self) -> tuple[int, ...]:
        """The nodes that a stage's first visit runs besides: makers of pinned values, and nodes that nobody reads
        from."""
        nodes, stage = self.problem.nodes, self.stage
        pinned = [value for value in self.writer if value in self.pinned]
        useful = set(self.closure({*pinned, *stage.output, *self.wanted()}, stage.input))
        idle = [index for index in stage.forward if index not in useful]
        dead = [value for index in idle for value in nodes[index].writes]
        silent = [index for index in idle if not nodes[index].writes]
        dead += [value for index in silent for value in nodes[index].reads]
        made = self.closure({*pinned, *dead}, stage.input | (self.pinned - set(pinned)))
        return (*made, *silent)

    def wanted(self) -> frozenset[int]:
        """The stage's own values that its backward reads."""
        reads = {value for index in self.stage.backward for value in self.problem.nodes[index].reads}
        return frozenset(value for value in reads if value in self.writer and value not in self.given)

    def closure(self, targets: Iterable[int], have: Set[int]) -> tuple[int, ...]:
        """The forward nodes, in order, that make the targets from the values in `have`."""
        found: set[int] = set()
        todo = [value for value in targets if value not in have]
        while todo:
            value = todo.pop()
            index = self.writer.get(value)
            if index is None or index in found:
                continue
            found.add(index)
            todo += [read for read in self.problem.nodes[index].reads if read not in have]
        return tuple(sorted(found))

    def walk(self) -> tuple[int, ...]:
        """F_ck and F_0: the nodes that make the output."""
        return self.closure(self.stage.output, self.given)

    def forward(self, keep: Set[int]) -> tuple[int, ...]:
        """F_all: the nodes that make the output and the values to keep."""
        return self.closure(self.stage.output | keep, self.given)

    def backward(self, have: frozenset[int]) -> tuple[int, ...]:
        """B: its backward nodes, each after the recomputed values that it reads."""
        if have not in self.known:
            self.known[have] = self._backward(have)
        return self.known[have]

    def _backward(self, have: Set[int]) -> tuple[int, ...]:
        there = set(have) | self.given
        order: list[int] = []
        for index in self.stage.backward:
            for missing in self.closure(self.problem.nodes[index].reads, there):
                order.append(missing)
                there.update(self.problem.nodes[missing].writes)
            order.append(index)
        return tuple(order)

    def way(self, keep: Set[int]) -> StageWay:
        """The way that keeps these values. It keeps the output only if `keep` has it or the backward reads it."""
        output = self.output
        kept = frozenset(keep)
        back = self.backward(kept | output)
        reads = {value for index in back for value in self.problem.nodes[index].reads}
        if reads & output or kept & output:
            kept |= output
        there = self.forward(kept)
        return StageWay(
            keep=kept,
            time=self.time(there) + self.time(back),
            kept=self.bytes(kept),
            holds=not output or bool(kept & output),
            loose=not (reads | self.stage.output) & self.stage.input,
            forward=self.peak(there, frozenset(), kept | output),
            backward=self.peak_back(back, kept),
        )

    def at_once(self) -> tuple[int, int]:
        """Time and memory of F_all and B one after the other, without the output, which nobody reads."""
        back = self.backward(frozenset())
        return self.time(back), self.peak_back(back, frozenset())

    def time(self, order: Iterable[int]) -> int:
        return sum(self.problem.nodes[index].cost for index in order)

    def bytes(self, values: Iterable[int]) -> int:
        return sum(self.problem.sizes[value] for value in values)

    def peak_back(self, order: Sequence[int], have: Set[int]) -> int:
        """The most bytes held while the backward runs, other stages' gradients among them."""
        stage = self.stage
        return stage.finished + self.peak(order, have | stage.gradient_in, stage.gradient_out)

    def peak(self, order: Sequence[int], start: Set[int], end: Set[int]) -> int:
        """The most bytes held while the order runs: `start` is there before, `end` must be there after."""
        nodes, sizes, optional = self.problem.nodes, self.problem.sizes, self.problem.optional
        needed = {value for value in end if value not in self.given}
        dying: list[set[int]] = []
        for index in reversed(order):
            touched = {value for value in (*nodes[index].reads, *nodes[index].writes) if value not in self.given}
            dying.append(touched - needed)
            needed = (needed - set(nodes[index].writes)) | (touched & set(nodes[index].reads))
        held = (set(start) - self.given) & (needed | set(end))
        used = self.bytes(held)
        most = used
        for index, ends in zip(order, reversed(dying), strict=True):
            for value in nodes[index].writes:
                if value in held or value in self.given or (value in ends and value in optional):
                    continue
                place = self._place_taken(index, value, ends & held)
                if place is None:
                    used += sizes[value]
                else:
                    held.discard(place)
                held.add(value)
            most = max(most, used + nodes[index].workspace)
            for value in ends & held:
                held.discard(value)
                used -= sizes[value]
        return most

    def _place_taken(self, index: int, value: int, dying: Set[int]) -> int | None:
        """The read that a node writes over: an output ends in memory of its own, and so over nothing."""
        if value in self.outputs:
            return None
        sizes = self.problem.sizes
        reads = (read for write, read in self.problem.nodes[index].overwrites if write == value)
        return next((read for read in reads if read in dying and sizes[read] == sizes[value]), None)
