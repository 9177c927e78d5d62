"""The registered methods over chains: `rotor`, `rotor-floating`, `revolve` and `rotor+`.

Each cuts the graph into stages in several manners, solves each chain, and takes the best order of all.

Invariant: a FEASIBLE order was measured to fit; nothing here proves that none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from solvers.methods.chains import floating
from solvers.methods.chains.chain import ChainStep, written
from solvers.methods.chains.from_graph import Stages, cut
from solvers.methods.chains.options import DIVIDED, Divided
from solvers.methods.chains.program import Floats, solve_segments, trace
from solvers.methods.chains.rotor import SLOTS, without_ways
from solvers.methods.chains.slots import Slots, counted
from solvers.methods.chains.staged import (
    BEYOND,
    Staged,
    StagedOrder,
    as_chain,
    fine_slots,
    most_slots,
    plain,
    search,
    segments,
)
from solvers.methods.chains.ways import all_ways
from solvers.notes import Note, SolverNote
from solvers.orders.best import GIVEN, Best
from solvers.orders.bounds import peak_bound
from solvers.orders.polish import polish
from solvers.problem import Limits, Problem, Result

Pair = tuple[StagedOrder | None, StagedOrder | None]  # the cheapest order that fits, and the one of least peak
Sequences = Callable[[int], tuple[ChainStep, ...]]  # the sequence for each memory, in slots

# how many values may cross a cut, and how many stages to join into one
_PLAIN = ((1, (1,)), (2, (1,)), (4, (1,)))
_JOINED = ((1, (1, 2, 3, 4, 6, 9)), (2, (1, 2, 4, 8)), (4, (1,)))
_LARGEST = 40  # in nodes: the most forward nodes of a joined stage
_LONGEST = 250  # in stages: the most where several values cross
# nodes times manners of joining them; work is counted, not timed, so that answers do not depend on the machine
_WORK = 40_000
_WIDER, _WIDEST = 1.6, 4.0  # the growth of a table's reach beyond the budget: each time, at most
_PERSISTENT = "optimal, as its rules count memory, among sequences that keep what they keep until its backward"
_INPUTS = "optimal, as its rules count memory, among sequences that keep inputs of stages only"
_FLOATING = "optimal, as its rules count memory, among sequences that give up what they keep at any time"
_SEVERAL = "optimal, as its rules count memory, over the ways found to run each stage"
_SPELLED = 40  # in stages: a longer chain's sequence is not written out


def rotor(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """Algorithm 3 on the stages, each keeping all that its backward reads."""
    best = _Chained(problem, budget, limits, _PERSISTENT)
    for stages in _cuts(best, _PLAIN):
        _persistent(best, plain(stages, best.arrays), options.slots or SLOTS)
    return best.answer()


def revolve(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """Only inputs of stages are kept; each backward comes right after its forward."""
    best = _Chained(problem, budget, limits, _INPUTS)
    for stages in _cuts(best, _PLAIN):
        _persistent(best, plain(stages, best.arrays), options.slots or SLOTS, inputs_only=True)
    return best.answer()


def rotor_floating(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """Algorithm 1 on the stages, and Algorithm 3, whose sequences are of its class.

    Cuts that make more stages than the larger table can have are left to Algorithm 3.
    """
    best, slots = _Chained(problem, budget, limits, _FLOATING), options.slots or SLOTS
    for stages in _cuts(best, _JOINED):
        single = plain(stages, best.arrays)
        _persistent(best, single, slots)
        if floating.bytes_needed(len(stages.stages), int(slots * BEYOND)) <= floating.MOST_BYTES:
            _floating(best, single, slots)
    return best.answer()


def rotor_plus(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """The chain program chooses among several ways to run each stage; spare memory is used at the end.

    Without `slots`, there are as many as a table of moderate size allows.
    """
    best = _Chained(problem, budget, limits, _SEVERAL)
    for stages in _cuts(best, _PLAIN):
        _persistent(best, plain(stages, best.arrays), options.slots or SLOTS)
    manners = max(2, _WORK // max(1, len(problem.nodes)))
    for stages in islice(_cuts(best, _JOINED), manners):
        single = plain(stages, best.arrays)
        several = Staged(
            stages, single.runners, all_ways(single.runners, best.limits.clock.unless(best.done)), best.arrays
        )
        _persistent(best, several, options.slots or fine_slots(len(stages.stages)))
        best.polish()
    return best.answer()


class _Chained(Best):
    """The best order known, with its chain and sequence."""

    def __init__(self, problem: Problem, budget: int, limits: Limits, kind: str) -> None:
        """`kind`: the class in which its sequences are optimal."""
        super().__init__(problem, budget, limits)
        self.kind = kind
        self.total = sum(node.cost for node in problem.nodes)
        self.bound = float(self.total)
        self.stages: Stages | None = None
        self.sequence: tuple[ChainStep, ...] = ()
        self.polished = False
        self.offer(range(len(problem.nodes)), GIVEN)

    def done(self) -> bool:
        return self.cost == self.total or self.over()

    def take(self, stages: Stages, pair: Pair) -> None:
        for found in pair:
            before = self.fitting
            if found is not None and self.offer(found.order, "the chain") and self.fitting is not before:
                self.stages, self.sequence, self.polished = stages, found.sequence, False

    def polish(self) -> None:
        if self.order is not None and not self.polished and not self.done():
            self.offer(polish(self.arrays, self.order, self.budget, self.done), "polishing")
            self.polished = True

    def answer(self) -> Result:
        found = self.result(float(self.total), self._notes())
        return replace(found, peak_bound=peak_bound(self.problem).peak)

    def _notes(self) -> tuple[Note, ...]:
        if self.stages is None:
            return ()
        count = len(self.stages.stages)
        said = [Note(SolverNote.CHAIN, (count,)), Note(SolverNote.CHAIN_CLASS, (self.kind,))]
        if count <= _SPELLED and self.sequence:
            said.append(Note(SolverNote.CHAIN_SEQUENCE, (written(self.sequence),)))
        if self.stages.derived:
            said.append(Note(SolverNote.BACKWARD_GUESSED))
        return tuple(said)


def _cuts(best: _Chained, manners: Iterable[tuple[int, tuple[int, ...]]]) -> Iterator[Stages]:
    """The stages of each manner of cutting that makes a chain; a chain that occurs twice is given once."""
    seen: set[tuple[tuple[int, ...], ...]] = set()
    for most, joined in manners:
        for coarse in joined:
            if best.done():
                return
            stages = cut(best.problem, most, coarse)
            chain = tuple(stage.forward for stage in stages.stages)
            if coarse > 1 and max(map(len, chain)) > _LARGEST:
                break
            if most > 1 and len(chain) > _LONGEST:
                break
            if len(chain) > 1 and chain not in seen:
                seen.add(chain)
                yield stages


def _persistent(best: _Chained, staged: Staged, wanted: int, inputs_only: bool = False) -> None:
    def program(unit: Slots, memory: int) -> tuple[Floats, Sequences]:
        chain = segments(staged, unit)
        table = solve_segments(without_ways(chain) if inputs_only else chain, memory, best.done)
        return table.whole(), lambda slots: trace(table, slots)

    _widening(best, staged, min(wanted, most_slots(len(staged.runners))), program)


def _floating(best: _Chained, staged: Staged, wanted: int) -> None:
    def program(unit: Slots, memory: int) -> tuple[Floats, Sequences]:
        table = floating.FloatingProgram(counted(as_chain(staged), unit), memory, best.done)
        return table.whole(), table.trace

    _widening(best, staged, wanted, program)


def _widening(
    best: _Chained, staged: Staged, wanted: int, program: Callable[[Slots, int], tuple[Floats, Sequences]]
) -> None:
    """Offer the program's orders. While all of them fit, use a table of the same size that reaches further."""
    beyond = BEYOND
    while not best.done():
        unit = staged.slots(best.budget, max(1, int(wanted * BEYOND / beyond)))
        whole, sequence = program(unit, int(unit.count * beyond))
        fitting, least, more = search(staged, best.budget, whole, sequence, best.done)
        best.take(staged.stages, (fitting, least))
        beyond *= _WIDER
        if not more or beyond > _WIDEST:
            return
