"""From a training graph to a chain of stages: cut where only one forward value crosses, or few together.

A stage is an arbitrary sub-graph with its forward nodes and those backward nodes that need what it computes. Several
values that cross a cut become one composite. Values that must not be computed twice, forward outputs, and small values
that cross many cuts (a mask that every layer reads) are pinned: held from their compute to their last use, whatever
the sequence.

Invariant: a stage's forward nodes read only the stage itself, what crosses into it, and pinned values; so do its
backward nodes, besides gradients that later stages wrote. Running the stages' forwards in order and their backwards in
reverse is legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from solvers.problem import Problem

_SMALL = 0.001  # share of all forward bytes: a smaller value may be pinned if it crosses many cuts
_MANY = 0.1  # share of all cuts


@dataclass(frozen=True, slots=True)
class Stage:
    forward: tuple[int, ...]  # nodes
    backward: tuple[int, ...]
    input: frozenset[int]  # the values that cross into the stage: the last stage's output
    output: frozenset[int]
    gradient_in: frozenset[int]  # gradients held when its backward starts, without `finished`: δ^l
    gradient_out: frozenset[int]  # gradients held when its backward ends: δ^{l-1}
    finished: int  # bytes of outputs of later stages' backwards, which only wait for the end


@dataclass(frozen=True, slots=True)
class Stages:
    """`stages[l - 1]` is the paper's stage l."""

    problem: Problem
    stages: tuple[Stage, ...]
    pinned: frozenset[int]
    derived: bool  # the problem did not say which nodes are backward
    outputs: frozenset[int]

    def pinned_bytes(self) -> int:
        return sum(self.problem.sizes[value] for value in self.pinned)


def cut(problem: Problem, most: int = 1, coarse: int = 1) -> Stages:
    """Cut the graph wherever at most `most` values cross, pinned ones aside; then join each `coarse` stages."""
    return _Cutter(problem, most).stages(coarse)


def turn(problem: Problem) -> int:
    """Where the problem turns from forward to backward, if it does not say so: at the peak of the given order."""
    last = {value: index for index, node in enumerate(problem.nodes) for value in (*node.writes, *node.reads)}
    ending: list[list[int]] = [[] for _ in problem.nodes]
    for value, index in last.items():
        ending[index].append(value)
    held, most, place = 0, -1, 0
    for index, node in enumerate(problem.nodes):
        held += sum(problem.sizes[value] for value in node.writes)
        if held > most:
            most, place = held, index + 1
        held -= sum(problem.sizes[value] for value in ending[index])
    return place


class _Cutter:
    def __init__(self, problem: Problem, most: int) -> None:
        self.problem = problem
        self.most = most
        self.writer, self.readers = problem.writers(), problem.readers()
        self.derived = not any(node.backward for node in problem.nodes)
        split = turn(problem) if self.derived else 0
        backward: list[bool] = []
        for index, node in enumerate(problem.nodes):
            after = any(backward[self.writer[value]] for value in node.reads)
            backward.append(after or (index >= split if self.derived else node.backward))
        self.forward = [index for index in range(len(problem.nodes)) if not backward[index]]
        self.backward = [index for index in range(len(problem.nodes)) if backward[index]]
        self.is_backward = backward
        self.place = {index: place for place, index in enumerate(self.forward)}
        self.span = self._spans()
        self.pinned = self._pinned()

    def stages(self, coarse: int) -> Stages:
        of_forward, of_backward = self._settled(self._cut_forward())
        if coarse > 1:
            joined = {index: (stage + coarse - 1) // coarse for index, stage in of_forward.items()}
            of_forward, of_backward = self._settled(joined)
        pinned, outputs = frozenset(self.pinned), frozenset(self.problem.outputs)
        return Stages(self.problem, self._built(of_forward, of_backward), pinned, self.derived, outputs)

    def _settled(self, of: dict[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """Forward and backward nodes' stages, after joining stages that the backward needs at the same time."""
        while True:
            of_backward, conflicts = self._place_backward(of)
            if not conflicts:
                return of, of_backward
            of = _merge(of, conflicts)

    def _spans(self) -> dict[int, tuple[int, int]]:
        """Each forward value's first and last place among the forward nodes."""
        spans = {}
        for place, index in enumerate(self.forward):
            for value in self.problem.nodes[index].writes:
                later = [self.place[reader] for reader in self.readers[value] if not self.is_backward[reader]]
                spans[value] = (place, max(later, default=place))
        return spans

    def _pinned(self) -> set[int]:
        nodes, sizes = self.problem.nodes, self.problem.sizes
        outputs = set(self.problem.outputs)
        pinned = {value for value in self.span if value in outputs or nodes[self.writer[value]].once}
        small = _SMALL * sum(sizes[value] for value in self.span)
        crossed = _crossed(self.span[value] for value in self.span if value not in pinned and sizes[value] > small)
        cuts = [0]
        for place in range(len(self.forward)):
            cuts.append(cuts[-1] + (crossed.get(place, 0) <= self.most))
        for value, (first, last) in self.span.items():
            if sizes[value] <= small and cuts[last] - cuts[first] > max(2, _MANY * cuts[-1]):
                pinned.add(value)
        return pinned

    def _cut_forward(self) -> dict[int, int]:
        """The stage of each forward node: cut where few values cross, and not the same as at the cut before."""
        starts: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        for value, (first, last) in self.span.items():
            if value not in self.pinned and last > first:
                starts.setdefault(first, []).append(value)
                ends.setdefault(last, []).append(value)
        crossing: set[int] = set()
        before: set[int] | None = None
        stage, of = 1, {}
        for place, index in enumerate(self.forward):
            of[index] = stage
            crossing.difference_update(ends.get(place, ()))
            crossing.update(starts.get(place, ()))
            if place + 1 < len(self.forward) and len(crossing) <= self.most and crossing != before:
                before = set(crossing)
                stage += 1
        return of

    def _place_backward(self, of: dict[int, int]) -> tuple[dict[int, int], list[tuple[int, int]]]:
        """Each backward node in a stage that has what it reads, the last such stage but for those that have a home;
        where none has it all, the stages to merge.

        A node that reads nothing of any stage, as one that turns a weight around, goes with its first reader.
        """
        spans = self._spans_read(of)
        homes = self._homes(of, spans)
        least = self._least(spans)
        top = max(of.values(), default=1)
        placed: dict[int, int] = {}
        free: list[int] = []
        conflicts = []
        for index in self.backward:
            writers = [self.writer[value] for value in self.problem.nodes[index].reads]
            after = [placed[writer] for writer in writers if writer in placed]
            if index not in spans and not after:
                free.append(index)
                continue
            low, high = spans.get(index, (1, top))
            high = min([high, *after])
            if low > high:
                conflicts.append((high, low))
            placed[index] = high if index in spans else min(high, max(homes.get(index, high), least[index]))
        for index in reversed(free):
            readers = (reader for value in self.problem.nodes[index].writes for reader in self.readers[value])
            placed[index] = max((placed[reader] for reader in readers), default=1)
        return {index: placed[index] for index in self.backward}, conflicts

    def _spans_read(self, of: dict[int, int]) -> dict[int, tuple[int, int]]:
        """The stages that have all that a backward node reads of the forward pass, if it does."""
        reach = self._reach(of)
        spans = {}
        for index in self.backward:
            reads = [v for v in self.problem.nodes[index].reads if v in reach and v not in self.pinned]
            if reads:
                spans[index] = max(of[self.writer[v]] for v in reads), min(reach[v] for v in reads)
        return spans

    def _homes(self, of: dict[int, int], spans: dict[int, tuple[int, int]]) -> dict[int, int]:
        """Where a node that reads gradients alone belongs: to the stage whose weight it reads, or else to that of the
        gradient it consumes, which is where the others are that read it with something of the forward pass."""
        taking: dict[int, set[int]] = {}
        for index, stage in of.items():
            for number, _ in self.problem.nodes[index].takes:
                taking.setdefault(number, set()).add(stage)
        homes = {}
        for index in self.backward:
            node = self.problem.nodes[index]
            found = set().union(*(taking.get(number, ()) for number, _ in node.takes))
            if len(found) != 1:
                beside = {reader for value in node.reads for reader in self.readers[value] if reader in spans}
                found = {spans[reader][1] for reader in beside if self.is_backward[reader]}
            if found:
                homes[index] = max(found)
        return homes

    def _least(self, spans: dict[int, tuple[int, int]]) -> dict[int, int]:
        """The first stage that a node may belong to: its readers come later, and so in no later stage."""
        least: dict[int, int] = {}
        for index in reversed(self.backward):
            readers = {reader for value in self.problem.nodes[index].writes for reader in self.readers[value]}
            own = spans[index][0] if index in spans else 1
            least[index] = max([own, *(least[reader] for reader in readers if reader in least)])
        return least

    def _reach(self, of: dict[int, int]) -> dict[int, int]:
        """The last stage in which a value is there: as its own value, or as one that crosses into it."""
        return {value: of[self.forward[last]] for value, (_, last) in self.span.items()}

    def _built(self, of: dict[int, int], of_backward: dict[int, int]) -> tuple[Stage, ...]:
        count = max(of.values(), default=1)
        forward: list[list[int]] = [[] for _ in range(count + 1)]
        backward: list[list[int]] = [[] for _ in range(count + 1)]
        for index, stage in of.items():
            forward[stage].append(index)
        for index, stage in of_backward.items():
            backward[stage].append(index)
        reach = self._reach(of)
        crossing: list[set[int]] = [set() for _ in range(count + 1)]
        for value, (first, _) in self.span.items():
            if value not in self.pinned:
                for stage in range(of[self.forward[first]], reach[value]):
                    crossing[stage].add(value)
        gradients, finished = self._gradients(of_backward, count)
        outputs = set(self.problem.outputs)
        return tuple(
            Stage(
                tuple(forward[stage]),
                tuple(backward[stage]),
                frozenset(crossing[stage - 1]),
                frozenset(crossing[stage]),
                frozenset(gradients[stage]),
                frozenset(gradients[stage - 1] | (gradients[stage] & outputs)),
                finished[stage],
            )
            for stage in range(1, count + 1)
        )

    def _gradients(self, of_backward: dict[int, int], count: int) -> tuple[list[set[int]], list[int]]:
        """For each l, the gradients held between the backwards of l + 1 and l: they are yet to be read or just written.

        Outputs that nobody reads from there on count in bytes only, because every stage holds them.
        """
        held: list[set[int]] = [set() for _ in range(count + 1)]
        finished = [0] * (count + 1)
        outputs = set(self.problem.outputs)
        for index, stage in of_backward.items():
            for value in self.problem.nodes[index].writes:
                until = min((of_backward[reader] for reader in self.readers[value]), default=stage)
                if value in outputs:
                    until = min(until, stage - 1)
                    if until:
                        finished[until - 1] += self.problem.sizes[value]
                for later in range(until, stage):
                    held[later].add(value)
        for stage in range(count, 0, -1):
            finished[stage - 1] += finished[stage]
        return held, finished


def _crossed(spans: Iterable[tuple[int, int]]) -> dict[int, int]:
    """After each place, the number of spans that cross it."""
    change: dict[int, int] = {}
    for first, last in spans:
        change[first] = change.get(first, 0) + 1
        change[last] = change.get(last, 0) - 1
    crossed, now = {}, 0
    for place in range(max(change, default=-1) + 1):
        now += change.get(place, 0)
        crossed[place] = now
    return crossed


def _merge(of: dict[int, int], conflicts: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Stages low..high of each conflict become one; numbers stay consecutive."""
    count = max(of.values())
    joined = [False] * (count + 1)  # stage is one with the stage before
    for low, high in conflicts:
        for stage in range(low + 1, high + 1):
            joined[stage] = True
    number, renamed = 0, {}
    for stage in range(1, count + 1):
        number += not joined[stage]
        renamed[stage] = number
    return {index: renamed[stage] for index, stage in of.items()}
