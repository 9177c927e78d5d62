"""The registered methods over chains: `rotor`, `rotor-floating`, `revolve` and `rotor+`.

Each cuts the graph into stages in several manners, solves each chain, and takes the best order of all.

Invariant: a FEASIBLE order was measured to fit; nothing here proves that none does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from solvers.chains import floating
from solvers.chains.chain import Step, written
from solvers.chains.from_graph import Stages, cut
from solvers.chains.options import DIVIDED, Divided
from solvers.chains.program import Floats, solve_segments, trace
from solvers.chains.rotor import SLOTS, without_ways
from solvers.chains.slots import Slots, counted
from solvers.chains.staged import BEYOND, Found, Staged, as_chain, fine_slots, most_slots, plain, search, segments
from solvers.chains.ways import all_ways
from solvers.orders.arrays import Arrays, arrays_of
from solvers.orders.bounds import peak_bound
from solvers.orders.measure import measure
from solvers.orders.polish import polish
from solvers.problem import Limits, Problem, Progress, Result, Status

Pair = tuple[Found | None, Found | None]  # the cheapest that fits, and that of least peak
Sequences = Callable[[int], tuple[Step, ...]]  # for each memory, in slots

# how many values may cross a cut, and how many stages to join into one
_PLAIN = ((1, (1,)), (2, (1,)), (4, (1,)))
_JOINED = ((1, (1, 2, 3, 4, 6, 9)), (2, (1, 2, 4, 8)), (4, (1,)))
_LARGEST = 40  # forward nodes of a joined stage
_LONGEST = 250  # stages, where several values cross
_WORK = 40_000  # nodes, times manners of joining them: counted rather than timed, so that answers do not depend on it
_WIDER, _WIDEST = 1.6, 4.0  # how a table's reach beyond the budget grows
_PERSISTENT = "optimal, as its rules count memory, among sequences that keep what they keep until its backward"
_INPUTS = "optimal, as its rules count memory, among sequences that keep inputs of stages only"
_FLOATING = "optimal, as its rules count memory, among sequences that give up what they keep at any time"
_SEVERAL = "optimal, as its rules count memory, over the ways found to run each stage"
_SPELLED = 40  # stages: a longer chain's sequence is not written out


def rotor(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """Algorithm 3 on the stages, each keeping all that its backward reads."""
    best = _Best(problem, budget, limits, _PERSISTENT)
    for stages in _cuts(best, _PLAIN):
        _persistent(best, plain(stages, best.arrays), options.slots or SLOTS)
    return best.result()


def revolve(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """Only inputs of stages are kept; each backward comes right after its forward."""
    best = _Best(problem, budget, limits, _INPUTS)
    for stages in _cuts(best, _PLAIN):
        _persistent(best, plain(stages, best.arrays), options.slots or SLOTS, inputs_only=True)
    return best.result()


def rotor_floating(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """Algorithm 1 on the stages, and Algorithm 3, whose sequences are of its class.

    Cuts that make more stages than the larger table can have are left to Algorithm 3.
    """
    best, slots = _Best(problem, budget, limits, _FLOATING), options.slots or SLOTS
    for stages in _cuts(best, _JOINED):
        single = plain(stages, best.arrays)
        _persistent(best, single, slots)
        if floating.bytes_needed(len(stages.stages), int(slots * BEYOND)) <= floating.MOST_BYTES:
            _floating(best, single, slots)
    return best.result()


def rotor_plus(problem: Problem, budget: int, limits: Limits, options: Divided = DIVIDED) -> Result:
    """The chain program chooses among several ways to run each stage; what memory is left is spent at the end.

    Without `slots`, as many as a table of moderate size allows.
    """
    best = _Best(problem, budget, limits, _SEVERAL)
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
    return best.result()


class _Best:
    """What is known so far: the cheapest order that fits, the order of least peak, and where they came from."""

    def __init__(self, problem: Problem, budget: int, limits: Limits, among: str) -> None:
        """`among`: the class in which its sequences are optimal."""
        self.problem, self.budget, self.limits, self.among = problem, budget, limits, among
        self.arrays: Arrays = arrays_of(problem)
        self.bound = sum(node.cost for node in problem.nodes)
        self.stages: Stages | None = None
        self.fitting: Found | None = None
        self.polished = False
        self.least: Found | None = None
        whole = np.arange(len(problem.nodes))
        as_given = Found(whole, *measure(self.arrays, whole), ())
        self.consider((as_given if as_given.peak <= budget else None, as_given))

    def done(self) -> bool:
        solved = self.fitting is not None and self.fitting.cost == self.bound
        return solved or self.limits.clock.over()

    def take(self, stages: Stages, pair: Pair) -> None:
        if self.consider(pair):
            self.stages = stages

    def consider(self, pair: Pair) -> bool:
        """Keep what is better; says whether the cheapest that fits is new."""
        fitting, least = pair
        if least is not None and (self.least is None or least.peak < self.least.peak):
            self.least = least
        if fitting is None or (
            self.fitting is not None and (self.fitting.cost, self.fitting.peak) <= (fitting.cost, fitting.peak)
        ):
            return False
        self.fitting, self.polished = fitting, False
        order = tuple(map(int, fitting.order))
        self.limits.report(Progress(self.limits.clock.elapsed(), fitting.cost, self.bound, order))
        return True

    def polish(self) -> None:
        if self.fitting is not None and not self.polished and not self.done():
            order = polish(self.arrays, self.fitting.order, self.budget, self.done)
            self.consider((Found(order, *measure(self.arrays, order), self.fitting.sequence), None))
            self.polished = True

    def result(self) -> Result:
        found = self.fitting or self.least
        assert found is not None, "the order as given is always there"
        least = peak_bound(self.problem).peak
        status = Status.UNKNOWN
        if self.fitting is not None:
            status = Status.OPTIMAL if self.fitting.cost == self.bound else Status.FEASIBLE
        return Result(status, tuple(map(int, found.order)), float(self.bound), self.notes(found), least)

    def notes(self, found: Found) -> tuple[str, ...]:
        if self.stages is None:
            return ()
        count = len(self.stages.stages)
        said = [f"a chain of {count} stages", self.among]
        if count <= _SPELLED and found.sequence:
            said.append(written(found.sequence))
        if self.stages.derived:
            said.append("the model does not say which ops are backward: taken from where most memory is held")
        return tuple(said)


def _cuts(best: _Best, manners: Iterable[tuple[int, tuple[int, ...]]]) -> Iterator[Stages]:
    """The graph cut in each manner that makes a chain, and each chain once."""
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


def _persistent(best: _Best, staged: Staged, wanted: int, inputs_only: bool = False) -> None:
    def program(unit: Slots, memory: int) -> tuple[Floats, Sequences]:
        chain = segments(staged, unit)
        table = solve_segments(without_ways(chain) if inputs_only else chain, memory, best.done)
        return table.whole(), lambda slots: trace(table, slots)

    _widening(best, staged, min(wanted, most_slots(len(staged.runners))), program)


def _floating(best: _Best, staged: Staged, wanted: int) -> None:
    def program(unit: Slots, memory: int) -> tuple[Floats, Sequences]:
        table = floating.Program(counted(as_chain(staged), unit), memory, best.done)
        return table.whole(), table.trace

    _widening(best, staged, wanted, program)


def _widening(
    best: _Best, staged: Staged, wanted: int, program: Callable[[Slots, int], tuple[Floats, Sequences]]
) -> None:
    """Take what the program finds; as long as all of it fits, a table of the same size that goes further."""
    beyond = BEYOND
    while not best.done():
        unit = staged.slots(best.budget, max(1, int(wanted * BEYOND / beyond)))
        whole, sequence = program(unit, int(unit.count * beyond))
        fitting, least, more = search(staged, best.budget, whole, sequence, best.done)
        best.take(staged.stages, (fitting, least))
        beyond *= _WIDER
        if not more or beyond > _WIDEST:
            return
