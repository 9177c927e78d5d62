"""Checkmate's question answered with a proof: the cheapest recomputation that fits, for the given first computes.

One anytime loop. Eviction walks give schedules at once; cuts in time give a bound and say what to hold across each
boundary, which guides further walks; boundaries are added where the relaxation's answer does not fit, until schedule
and bound meet. Beside SCIP, in this thread, annealing improves the best schedule. (P. Jain et al., "Checkmate: Breaking
the Memory Wall with Optimal Tensor Rematerialization", MLSys 2020, pose the question.)

Invariant: the bound holds for every schedule that first computes the nodes in the order given, wherever and however
often it recomputes, and the schedules returned are of that class. How much is searched between two looks at the bound
is counted in moves and tree nodes, never in seconds, so that without a time-out the answer depends on the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import product
from math import ceil, gcd, isfinite
from time import monotonic

import numpy as np

from solvers import scip
from solvers.exact.anneal import anneal, start
from solvers.exact.arrays import Ints, arrays_of
from solvers.exact.bounds import cost_bound, peak_bound, prove
from solvers.exact.cuts import Cuts, build, expand, kept, project, small_values
from solvers.exact.evict import TASTES, Evictor, Hints, Taste
from solvers.exact.incumbent import Incumbent
from solvers.exact.lowest import search
from solvers.exact.measure import memory_of
from solvers.exact.tables import EXCESS, KEYS, MEMORY, TOTAL, order_of, pack
from solvers.problem import Limits, Node, Problem, Progress, Result, Status

_CLASS = "the bound covers every schedule that first computes the ops in the order given"
_SMALL = 0.001  # of the budget, may be taken by values that the relaxation does not count
_ADDED = 4  # boundaries in a round
_MOVES = 10_000_000  # of annealing in one go, times nodes
_TREE = 40  # nodes of SCIP's search tree at first, for a program of _COLUMNS columns
_COLUMNS = 2000
_WORK = 2_000_000  # iterations of SCIP's simplex method, times columns, that one go of annealing is worth
_LARGE = 500  # nodes: a walk takes longer than some milliseconds
_IDLE = 12  # goes of annealing without success before giving up
_HEATS = (3e-3, 1e-3, 3e-4)  # of the cost


def solve(problem: Problem, budget: int, limits: Limits, *, candidates: Sequence[Sequence[int]] = ()) -> Result:
    """`candidates`: orders known beforehand, such as the plans of smaller budgets."""
    hunt = Hunt(problem, budget, limits)
    for order in candidates:
        hunt.best.offer(order)
    return hunt.run()


class Hunt:
    """One search for the best order within one budget."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.problem = problem
        self.ended = replace(problem, nodes=(*problem.nodes, Node(0, tuple(sorted(set(problem.outputs))), ())))
        self.budget = budget
        self.limits = limits
        self.begun = monotonic()
        self.arrays = arrays_of(problem)
        self.evictor = Evictor(problem)
        self.total = cost_bound(problem)
        self.unit = max(1, gcd(*(node.cost for node in problem.nodes)))
        self.scale = max((node.cost for node in problem.nodes), default=0) / 1000 or 1.0
        self.bound = self.total
        self.least = peak_bound(problem)
        self.infeasible = self.least.peak > budget
        self.best = Incumbent(self.arrays, budget, self.tell)
        self.tastes: list[Taste] = list(TASTES)
        self.tables: Ints | None = None
        self.annealed = 0
        self.effort = 1
        self.size = ""

    def run(self) -> Result:
        self.best.offer(range(len(self.problem.nodes)))
        if not self.done():
            self.walk_plainly()
        if self.best.order is None:
            self.doubt()
        if not self.done():
            self.refine()
        return self.result()

    def doubt(self) -> None:
        """Nothing fits yet: look for a proof that nothing can, and for the least peak."""
        share = replace(self.limits, seconds=max(0.1, self.left() / 4), report=lambda _: None)
        self.least = prove(self.problem, self.budget + 1, share)
        self.infeasible = self.least.peak > self.budget
        lowest = search(self.problem, share, monotonic())
        if lowest.least_order is not None:
            self.best.offer(lowest.least_order)
        if self.infeasible and self.best.least_peak is not None:
            self.least = prove(self.problem, self.best.least_peak, share)

    def seconds(self) -> float:
        return monotonic() - self.begun

    def left(self) -> float:
        return self.limits.seconds - self.seconds()

    def tell(self) -> None:
        order = None if self.best.order is None else tuple(map(int, self.best.order))
        self.limits.report(Progress(self.seconds(), self.best.cost, self.bound, order))

    def closed(self) -> bool:
        return self.best.cost is not None and self.best.cost <= self.bound * (1 + self.limits.gap)

    def out_of_time(self) -> bool:
        return self.left() <= 0 or self.limits.stopped()

    def done(self) -> bool:
        return self.infeasible or self.closed() or self.out_of_time()

    def raise_bound(self, bound: float) -> None:
        """A cost is the total and some multiple of what all costs have in common."""
        if not isfinite(bound):
            return
        steps = ceil((bound - self.total) / self.unit - 1e-6)
        raised = self.total + max(0, steps) * self.unit
        if raised > self.bound:
            self.bound = raised
            self.tell()

    def walk_plainly(self) -> None:
        """All tastes; on large graphs, after this only those that do best here."""
        found: list[tuple[int, int]] = []
        for place, taste in enumerate(TASTES):
            if self.done():
                return
            order = self.evictor.run(self.budget, taste, self.limits.seed)
            found.append((self.best.offer(order), place))
        if len(self.problem.nodes) > _LARGE:
            self.tastes = [TASTES[place] for _, place in sorted(found)[:8]]

    def walk_with(self, hints: Hints) -> None:
        for strength, taste in product((1e4, 30.0, 3.0), self.tastes):
            if self.done():
                return
            self.best.offer(self.evictor.run(self.budget, replace(taste, hint=strength), self.limits.seed, hints))

    def refine(self) -> None:
        memory = memory_of(self.arrays, np.arange(len(self.problem.nodes), dtype=np.int64))
        taus = first_boundaries(memory, self.budget)
        repeats: set[tuple[int, int]] = set()
        relaxation: Relaxation | None = None
        while not self.done():
            relaxation = relaxation or self.pose(taus, repeats)
            answer = self.relax(relaxation)
            if answer.status is Status.INFEASIBLE:
                self.infeasible = self.best.order is None
                return
            more, again = self.follow(relaxation.cuts, answer.values)
            self.polish(len(_HEATS))
            if more or not repeats.issuperset(again):
                taus, repeats = sorted({*taus, *more}), repeats if more else repeats | again
                relaxation = None
            elif answer.status is Status.OPTIMAL:
                self.polish(_IDLE)
                return
            if answer.status is not Status.OPTIMAL:
                self.effort *= 2

    def pose(self, taus: Sequence[int], repeats: set[tuple[int, int]]) -> Relaxation:
        free = small_values(self.ended, self.budget, _SMALL)
        cuts = build(self.ended, self.budget, taus, free, self.scale, repeats)
        cuts.program.offset = self.total / self.scale
        columns = len(cuts.program.costs)
        self.size = f"the last relaxation had {columns} columns at {len(cuts.taus)} boundaries"
        return Relaxation(cuts)

    def follow(self, cuts: Cuts, values: Sequence[float] | None) -> tuple[list[int], set[tuple[int, int]]]:
        """Try what the relaxation's answer suggests; where it does not fit: stages, and (stage, node) of repeats."""
        if values is None or self.done():
            return [], set()
        order = np.array(expand(cuts, values), dtype=np.int64)
        self.best.offer(order)
        self.walk_with(hints_of(cuts, values))
        self.mend(order)
        memory = memory_of(self.arrays, order)
        return over_budget(memory, order, self.budget, cuts.taus), over_again(memory, order, self.budget)

    def mend(self, order: Ints) -> None:
        """Anneal from the relaxation's answer, which may not quite fit."""
        for _ in _HEATS:
            if self.done():
                return
            mended = self.anneal(order)
            if mended is not None:
                self.best.offer(mended)

    def polish(self, patience: int) -> None:
        """Anneal until that has found nothing so many times running."""
        idle = 0
        while idle < patience and not self.done():
            before = self.best.cost
            order = self.anneal(None)
            if order is not None:
                self.best.offer(order)
            idle = idle + 1 if self.best.cost == before else 0

    def relax(self, relaxation: Relaxation) -> scip.Answer:
        """SCIP on the relaxation, from where it stopped if it did, and annealing beside it."""
        cuts, columns = relaxation.cuts, len(relaxation.cuts.program.costs)
        starts = [] if self.best.order is None else [project(cuts, list(map(int, self.best.order)))]
        cost = self.best.cost
        nodes = relaxation.nodes + self.effort * tree(columns)
        enough = None if cost is None else (cost / (1 + self.limits.gap) + self.unit) / self.scale
        if relaxation.solving is None:
            settings = scip.Settings(
                verbose=self.limits.verbose,
                seconds=self.left(),
                gap=self.limits.gap / 4,
                seed=self.limits.seed,
                nodes=nodes,
                emphasis="fast",  # walks and annealing find better schedules than its own heuristics
                enough=enough,
                parameters={"branching/pscost/priority": 1_000_000}
                if nodes < 10
                else {"branching/relpscost/initcand": 20},
            )
            relaxation.solving = scip.Solving(cuts.program, settings, starts)
        else:
            relaxation.solving.go_on(self.left(), nodes, enough, starts)
        begun, solving = self.annealed, relaxation.solving
        found = [self.anneal(None)] if solving.running() else []
        while solving.running() and not self.out_of_time():
            found.append(self.anneal(found[-1]))
        answer = solving.wait(self.out_of_time)
        earned = (answer.work - relaxation.work) * columns // _WORK
        self.adopt(found, earned)
        self.annealed = begun + earned  # which seeds come next must not depend on the clock either
        relaxation.nodes, relaxation.work = answer.nodes, answer.work
        self.raise_bound(answer.bound * self.scale)
        return answer

    def adopt(self, found: list[Ints | None], earned: int) -> None:
        """Of what annealing found beside SCIP, take as much as SCIP's work is worth: the clock must not decide."""
        while len(found) < earned and not self.out_of_time():
            found.append(self.anneal(found[-1] if found else None))
        taken = found if self.out_of_time() else found[:earned]
        if taken and taken[-1] is not None:
            self.best.offer(taken[-1])

    def anneal(self, order: Ints | None) -> Ints | None:
        """The best order that one go of annealing comes by, from this one or else the best known."""
        if order is None:
            order = self.best.order if self.best.order is not None else self.best.least_order
        if order is None:
            return None
        if self.tables is None:
            self.tables = pack(self.evictor.arrays)
        nodes = len(self.problem.nodes) + 1
        self.annealed += 1
        state = start(self.tables, self.budget, order)
        least = state[TOTAL] if state[EXCESS] == 0 else 1 << 60
        keys, best = state[state[KEYS] : state[MEMORY]].copy(), np.array([least, 0])
        heat = _HEATS[self.annealed % len(_HEATS)] * max(1, self.total)
        seed = self.limits.seed * 1000 + self.annealed
        anneal(self.tables, state, keys, best, min(12_000, max(1000, _MOVES // nodes)), heat, heat / 100, seed)
        return order_of(keys[: best[1]], nodes) if best[1] else order

    def result(self) -> Result:
        best = self.best
        if best.order is not None:
            status = Status.OPTIMAL if self.closed() else Status.FEASIBLE
            notes = (_CLASS, self.size) if self.size else (_CLASS,)
            return Result(status, tuple(map(int, best.order)), self.bound, notes, *astuple(self.least))
        status = Status.INFEASIBLE if self.infeasible else Status.UNKNOWN
        order = None if best.least_order is None else tuple(map(int, best.least_order))
        return Result(status, order, None, (), *astuple(self.least))


@dataclass(slots=True)
class Relaxation:
    """One relaxation, and how far SCIP has come with it."""

    cuts: Cuts
    solving: scip.Solving | None = None
    nodes: int = 0
    work: int = 0


def tree(columns: int) -> int:
    """How many nodes of the search tree a round is worth: each takes ever longer, and boundaries bring more."""
    return max(1, int(_TREE * min(1.0, _COLUMNS / max(1, columns)) ** 3))


def first_boundaries(memory: Ints, budget: int) -> list[int]:
    """Stages spread over those whose memory is over budget without recomputation, and the worst of them."""
    over = np.flatnonzero(memory > budget)
    if not len(over):
        return []
    places = np.linspace(0, len(over) - 1, 6)[1:-1]
    return sorted({int(np.argmax(memory)), *(int(over[round(place)]) for place in places)})


def over_budget(memory: Ints, order: Ints, budget: int, taus: Sequence[int]) -> list[int]:
    """Stages at which an order does not fit and no boundary stands: the worst two, then such as lie well apart."""
    _, first = np.unique(order, return_index=True)
    worst = [(int(memory[step]), stage) for stage, step in enumerate(first) if memory[step] > budget]
    stages = [stage for _, stage in sorted(worst, reverse=True) if stage not in taus]
    found = stages[: _ADDED // 2]
    for stage in stages:
        if len(found) < _ADDED and all(abs(stage - other) > len(first) // 20 for other in (*taus, *found)):
            found.append(stage)
    return found


def over_again(memory: Ints, order: Ints, budget: int) -> set[tuple[int, int]]:
    """(stage, node) of the recomputations at which an order does not fit."""
    fresh = np.zeros(len(order), np.int64)
    fresh[np.unique(order, return_index=True)[1]] = 1
    stages = np.cumsum(fresh) - fresh
    steps = np.flatnonzero((memory > budget) & (fresh == 0))
    return {(int(stages[step]), int(order[step])) for step in steps}


def hints_of(cuts: Cuts, values: Sequence[float]) -> Hints:
    held = kept(cuts, values)
    group = np.zeros(len(cuts.problem.nodes), np.int64)
    keep = np.zeros((len(cuts.groups), len(cuts.problem.sizes)), np.bool_)
    for g, stages in enumerate(cuts.groups):
        group[stages.start : stages.stop] = g
        if g + 1 < len(cuts.groups):
            keep[g, sorted(held[g + 1] | cuts.free)] = True
    return Hints(group, keep)
