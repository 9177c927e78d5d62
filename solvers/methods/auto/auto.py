"""The default method: the order of first computes, the recomputation and the bounds are improved together.

It is one anytime loop. Local search over all orders with repeats finds a good order. The exact search (`milp`) works
within that order and within the given one, from the best schedule known. A relaxation without an order bounds them all
from below. The loop ends when schedule and bound meet or nothing more can be gained.

A go is one run of the annealing search: it starts from one order and makes a number of moves.

Invariant: `bound_any_order` holds for every schedule, `bound` for all that first compute the ops in the order of the
schedule returned. Moves, rounds and iterations decide the next step, never seconds: without a time-out only the seed
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property

import numpy as np

from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.auto.above import FromAbove
from solvers.methods.auto.local import LocalSearch
from solvers.methods.auto.record import NOTHING
from solvers.methods.auto.within import HuntWithin, list_first_computes
from solvers.methods.exact.milp import Hunt
from solvers.methods.exact.options import NOTHING_KNOWN, Known
from solvers.methods.exact.small import MOST, Small
from solvers.notes import Note, SolverNote
from solvers.orders.arrays import Ints
from solvers.orders.best import Best, Weighed
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor
from solvers.pebbles.copies import Copies
from solvers.pebbles.floor import STATES, dig
from solvers.pebbles.mending import Mending
from solvers.pebbles.windows import Stretches
from solvers.problem import Grounds, Limits, Problem, Progress, Result, Status
from solvers.reductions.reorder import in_order_of, lazy_orders
from solvers.updates import following_readers, in_time

_MOVES = (2_000, 200_000)  # the least and the most moves of a go
_PER_NODE = 400  # moves of a go for each node
_GOES = 8  # before the first relaxation
_VERY_LARGE = 2000  # nodes: walks told what a relaxation keeps find more than so many moves do, so that these are fewer
_FEWER = 2  # goes before the first relaxation, and times as long as others at most
_MORE = 3  # between two relaxations
_NEARBY = 8  # goes in a row without success from the best order of a large graph: each heat twice
_IDLE = 16  # goes without success before giving up
_PATIENCE = 2  # goes without success before they become twice as long
_LONGEST = 16  # times as long, at most
_LONG = 2_000_000  # moves: no longer than this either
_WALKS, _WALKED = 9, 200_000  # eviction walks at the beginning, and how many nodes they may cover together, but for one
_TRIED = 8  # of the orders that walks found, those from which a go is begun
_KEPT = 3  # of what these come to, where goes begin later, with the best
_GLANCES = 2  # rounds of the search for the least peak before that
_SHORT = 2  # goes from an order that nearly fits are so many times shorter before the least peak is searched for
_MENDING = 10  # moves of a go for each state of the search that mends what it comes to
_NEARER = 0.95  # of the bytes over budget that a go leaves, at most, for another from there
_REORDERED = 100  # nodes from which on a search for an order alone is worth its time
_DUG = 1 / 4  # of the time, at most, for the least peak where nothing else fits soon
_ABOVE = 1.1  # so far above the budget ways are sought whose orders may need less than the ways promise
_FAR_ABOVE, _LAST = 2.0, 1 / 2  # and in the end, where the time is for nothing else
_LEISURE = 5.0  # seconds, at least, for the least peak where it is proved that nothing fits
_DEAR = 1.1  # times the cost of everything once: from there on orders that had more room are tried as starts
_DENSE = 4  # reads of a node from which on eviction walks take long
_HUNT_ROUNDS = 3  # of a hunt, before another order takes its place


def solve(problem: Problem, budget: int, limits: Limits, options: Known = NOTHING_KNOWN) -> Result:
    """`candidates`: orders known beforehand, such as the plans of smaller budgets."""
    return Auto(problem, budget, limits).run(options.candidates)


class Auto:
    """One search over all orders for the cheapest schedule within a budget."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.as_asked, self.problem = problem, following_readers(problem)
        self.budget = budget
        self.limits = limits
        self.least = peak_bound(problem)
        self.best = Best(problem, budget, limits)
        self.below = BoundSearch(problem, budget)  # Bounds hold without updates too: they are for more orders then.
        self.floor = self.best.bound = self.below.bound  # the bound that `below` had after its last round
        self.no_plan = False
        self.walked: list[tuple[int, ...]] = []
        self.fitting_walks: list[Weighed] = []
        self.starts: list[tuple[int, ...]] = []  # orders far from each other, from which goes start in turn
        self.reordered: tuple[int, ...] | None = None
        self.local = LocalSearch(self.problem, budget, limits.seed)
        count = len(problem.nodes)
        self.given = tuple(range(count))
        # an order that nearly fits, and its bytes over budget
        self.nearest, self.missing = np.array(self.given, np.int64), NOTHING
        self.moves = min(max(_PER_NODE * count, _MOVES[0]), _MOVES[1])
        self.walks = max(1, min(_WALKS, _WALKED // max(1, count)))
        self.large = large = count > _VERY_LARGE
        self.first_goes, self.more, self.longest = (_FEWER, 1, _FEWER) if large else (_GOES, _MORE, _LONGEST)
        self.hunts: list[HuntWithin] = []
        self.stretched: Weighed | None = None  # the order of which no stretch can be computed at less cost
        # whether hunts within the given order and within the one with the best order alone were asked for
        self.asked = False
        self.goes = self.idle = 0

    def run(self, candidates: Sequence[Sequence[int]]) -> Result:
        for order in (self.given, *candidates):
            self.best.offer(order)
        if not self.done():
            self.begin()
        if self.best.fitting is None and not self.limits.clock.over():
            self.seek_least_peak()
        while not self.done() and not self.spent():
            self.raise_bound()
            self.stretch()
            if self.large:
                self.search_nearby()
            self.search_within()
        return self.result()

    @property
    def infeasible(self) -> bool:
        return self.no_plan or self.least.peak > self.budget

    def done(self) -> bool:
        return self.infeasible or self.best.closed(self.floor) or self.limits.clock.over()

    def spent(self) -> bool:
        """Whether nothing has succeeded for long enough."""
        return self.idle >= _IDLE and not any(not hunt.over for hunt in self.hunts)

    def begin(self) -> None:
        """Find schedules at once: local search from several orders, and walks along them; the walks come last where
        they are slow."""
        lazy = lazy_orders(self.problem)
        for order in lazy:
            self.best.offer(order)
        self.anneal(np.array(self.given, np.int64), self.moves // 10)
        reads = sum(len(node.reads) for node in self.problem.nodes)
        slow = reads > _DENSE * len(self.given)
        if not slow:
            self.walk(self.problem, tuple)
        if len(self.given) >= _REORDERED and not self.done():
            self.reorder(lazy[0], walked=not slow)
        if self.best.fitting is None:
            self.dig(_GLANCES)
        self.starts += [self.given, *map(tuple, lazy)]
        walks = self.cheapest_walks()
        tried = self.try_walked(walks[:1])
        self.come_from_above()
        if self.best.fitting is None:
            self.approach(self.moves // _SHORT)
            self.starts.append(tuple(self.nearest.tolist()))
            self.dig()
        self.start_from([*tried, *self.try_walked(walks[1:])])
        self.search_locally(1)
        self.stretch()
        if slow and self.best.fitting is None:
            self.approach(self.moves)
            if self.best.fitting is None:
                self.walk(self.problem, tuple)
        self.search_locally(self.first_goes - 1)
        if self.best.fitting is None:
            self.approach(self.moves)

    def come_from_above(self) -> None:
        """Where plans are dear so far, if there are any: goes from orders that had more room."""
        dear = int(sum(node.cost for node in self.problem.nodes) * _DEAR)
        orders = FromAbove(self.problem, self.best, self.copies, self.moves, self.walks).orders()
        while not self.done() and (self.best.cost is None or self.best.cost > dear):
            before, order = self.best.fitting, next(orders, None)
            if order is None:
                return
            self.best.offer(order)
            self.starts.insert(0, tuple(order.tolist()))
            self.anneal(order, self.moves)
            if self.best.fitting is not before:
                self.stretch()

    def reorder(self, order: Sequence[int], walked: bool) -> None:
        """Search for an order of first computes of a low peak, and walk along it."""
        first = self.local.go(np.array(order, np.int64), 0, self.moves // 2, self.limits.clock, reorder_only=True)
        self.reordered = tuple(first.tolist())
        if walked:
            way = in_order_of(self.problem, self.reordered)
            self.walk(way.problem, way.expand)
        self.starts.append(self.reordered)

    def dig(self, rounds: int = len(STATES), above: float = _ABOVE, part: float = _DUG) -> None:
        """Search for the least peak while nothing fits: an order of low enough peak is a schedule that fits.

        `above`: ways are sought up to so many times the budget; `part` of the time is for it, at most."""
        if self.best.fitting is None and not self.done():
            assert self.best.leanest is not None, "the order as given can always run"
            known = min(self.best.leanest.peak, int(self.budget * above) + 1)
            found = dig(self.best, known, self.limits.silent().share(part), rounds)
            self.least = max(self.least, found, key=lambda bound: bound.peak)

    def approach(self, moves: int) -> None:
        """Goes from the order that nearly fits, until it does, while some of them still come a good part nearer."""
        without = 0
        while self.missing > 0 and without < _PATIENCE and not self.done():
            before = self.missing
            self.anneal(self.nearest, moves)
            self.mend(moves // _MENDING)
            without = 0 if self.missing < _NEARER * before else without + 1

    def mend(self, states: int) -> None:
        """Compute the order that nearly fits anew where it takes more than the budget."""
        if self.missing in (0, NOTHING) or self.done():
            return
        mending = Mending(self.copies, self.best, states)
        order = mending.run(self.nearest)
        self.best.offer(order)
        over = int(mending.excess(order).sum())
        if over < self.missing:
            self.missing, self.nearest = over, order

    @cached_property
    def copies(self) -> Copies:
        return Copies(self.as_asked)

    def walk(self, problem: Problem, expand: Callable[[Sequence[int]], tuple[int, ...]]) -> None:
        """Evict along an order."""
        evictor = Evictor(problem, self.limits.clock)
        for rule in RULES[: self.walks]:
            if self.done():
                return
            order = expand(evictor.run(self.budget, rule, self.limits.seed).tolist())
            found = self.best.offer(order)
            if found is not None:
                self.walked.append(order)
                if self.best.fits(found):
                    self.fitting_walks.append(found)

    def cheapest_walks(self) -> list[Weighed]:
        found = {walk.cost: walk for walk in sorted(self.fitting_walks, key=lambda walk: walk.cost)}
        return list(found.values())[:_TRIED]

    def try_walked(self, walks: Sequence[Weighed]) -> list[Weighed]:
        """A go from each of these orders; those that fit. The result of a go depends little on the cost of its start,
        and on large graphs no other start leads as far."""
        orders = []
        for walk in walks:
            if self.done():
                break
            order = self.local.go(walk.order, 0, self.moves // 2, self.limits.clock)
            self.limits.clock.spend(self.moves // 2)
            known = self.best.offer(order)
            if known is not None and self.best.fits(known):
                orders.append(known)
        return orders

    def start_from(self, orders: Sequence[Weighed]) -> None:
        """Later goes begin with some of these orders, besides the best."""
        further = [known.steps() for known in sorted(orders, key=lambda known: known.cost)[1:_KEPT]]
        self.starts = further + ([] if self.large and further else self.starts)

    def stretch(self) -> None:
        """Compute stretches of the best order anew, where that order has changed since."""
        known = self.best.fitting
        if known is None or known is self.stretched or self.large or self.done():
            return
        self.best.offer(Stretches(self.copies, self.best, self.moves).improve(known).order)
        self.stretched = self.best.fitting

    def seek_least_peak(self) -> None:
        """While nothing fits: look for an order that does, for a proof that none can, and for the least peak."""
        if len(self.given) <= MOST:
            small = Small(self.problem, self.budget, self.best, self.limits.clock, ordered=False)
            small.run()
            self.no_plan = small.infeasible
            self.floor = self.best.bound = max(self.floor, small.bound)
        if self.best.fitting is None:
            hunt = Hunt(self.as_asked, self.budget, self._at_leisure() if self.infeasible else self.limits.silent())
            hunt.seek_least_peak()
            self.least = max(self.least, hunt.least, key=lambda bound: bound.peak)
            for known in (hunt.best.leanest, hunt.best.fitting):
                if known is not None:
                    self.best.offer(known.order)
        self.dig(above=_FAR_ABOVE, part=_LAST)
        self.lean()

    def lean(self) -> None:
        """Where nothing fits: find how small a budget would do."""
        lean = Best(self.problem, -1, self.limits.silent())
        if self.best.fitting is None and self.best.leanest is not None:
            lean.offer(self.best.leanest.order)
            found = dig(lean, self.best.leanest.peak, self.limits.silent().share(_DUG))
            self.least = max(self.least, found, key=lambda bound: bound.peak)
            if lean.leanest is not None:
                self.best.offer(lean.leanest.order)

    def _at_leisure(self) -> Limits:
        """The limits of a search after a proof, which gets no more time than the proof took."""
        limits = self.limits.silent()
        return limits.within(max(_LEISURE, limits.clock.elapsed()))

    def anneal(self, order: Ints, moves: int) -> None:
        if not self.done():
            found = self.local.go(order, self.goes, moves, self.limits.clock)
            self.best.offer(found)
            if self.local.over < self.missing:
                self.missing, self.nearest = self.local.over, found
            self.limits.clock.spend(moves)
            self.goes += 1

    def search_locally(self, goes: int) -> None:
        """Run so many goes, or fewer and longer ones of the same length in all where success is rare."""
        left = goes
        while left > 0 and not self.done():
            longer = min(1 << self.idle // _PATIENCE, self.longest)
            before = self.best.fitting
            self.anneal(self.next_start(), max(self.moves, min(longer * self.moves, _LONG)))
            self.idle = 0 if self.best.fitting is not before else self.idle + 1
            left -= longer

    def search_nearby(self) -> None:
        """Goes from the best order known, until none of so many in a row finds a better one: on large graphs they find
        more in their time than a relaxation does."""
        without = 0
        while without < _NEARBY and self.best.order is not None and not self.done():
            before = self.best.fitting
            self.anneal(self.best.order, self.moves)
            without = 0 if self.best.fitting is not before else without + 1

    def next_start(self) -> Ints:
        """The best order known, and in turn one of the other starts."""
        known = self.best.order
        if known is None and self.large:
            return self.nearest
        found = [(hunt, hunt.hunt.best.fitting) for hunt in self.hunts]
        others = [*self.starts, *(hunt.way.expand(best.steps()) for hunt, best in found if best is not None)]
        turn, own = divmod(self.goes, 2)
        if own and others:
            return np.array(others[turn % len(others)], np.int64)
        return self.nearest if known is None else known

    def raise_bound(self) -> None:
        """Run local search, and beside it a round of the bound over all orders, if the bound has not had its share of
        the work.

        Neither receives results of the other before both have ended, so that it does not matter which is faster.
        """
        if self.below.done or self.below.work > sum(hunt.hunt.work for hunt in self.hunts):
            self.search_locally(self.more)
            return
        cost = self.best.cost
        self.below.known = None if self.best.fitting is None else self.best.fitting.steps()
        enough = None if cost is None else cost / (1 + self.limits.gap)
        work, clock = self.below.work, self.limits.clock
        with ThreadPoolExecutor(1) as beside:
            going = beside.submit(self.below.go, replace(self.limits, clock=clock.timed()), enough)
            self.search_locally(self.more)
            going.result()
        clock.spend(iterations=self.below.work - work)
        if self.below.bound > self.floor:
            self.floor = self.best.bound = self.below.bound
            self.limits.report(Progress(clock.elapsed(), bound=self.floor))
        self.no_plan = self.no_plan or self.below.infeasible
        if self.below.order is not None:
            self.anneal(np.array(in_time(self.as_asked, self.below.order), np.int64), self.moves)

    def search_within(self) -> None:
        """A round of search within one order: the best schedule's, the given one and another, in turn."""
        own = self.given if self.best.fitting is None else list_first_computes(self.best.fitting.order)
        if all(hunt.first != own for hunt in self.hunts):
            lasting = self.given, self.reordered
            kept = [hunt for hunt in self.hunts if hunt.first in lasting or hunt.count < _HUNT_ROUNDS]
            self.hunts = [self.hunt_within(own), *[hunt for hunt in kept if not hunt.over][-3:]]
        for order in (self.given, self.reordered) if not self.asked else ():
            if order is not None and all(hunt.first != order for hunt in self.hunts):
                self.hunts.append(self.hunt_within(order))
        self.asked = True
        going = [hunt for hunt in self.hunts if not hunt.over]
        if going and not self.done():
            min(going, key=lambda hunt: hunt.count).go()

    def hunt_within(self, first: tuple[int, ...]) -> HuntWithin:
        return HuntWithin(self.problem, first, self.best, self.walked)

    def bound(self) -> tuple[float, Grounds]:
        """The bound for schedules with the best schedule's order of first computes, and its grounds."""
        assert self.best.fitting is not None
        own = list_first_computes(self.best.fitting.order)
        found = [(self.floor, self.below.grounds)]
        found += [(it.hunt.bound, it.hunt.grounds.renamed(it.way.node_of)) for it in self.hunts if it.first == own]
        return max(found, key=lambda pair: pair[0])

    def result(self) -> Result:
        best, any_order = self.best, self.floor
        if best.fitting is None:
            status = Status.INFEASIBLE if self.infeasible else Status.UNKNOWN
            steps = None if best.leanest is None else best.leanest.steps()
            return self.least.told(Result(status, steps, grounds=(self.below.grounds,)))
        bound, grounds = self.bound()
        status, note = Status.FEASIBLE, SolverNote.BOUND_IN_OWN_ORDER
        if best.closed(any_order):
            status, note = Status.OPTIMAL, SolverNote.BOUND_IN_ANY_ORDER
        elif best.closed(bound):
            status = Status.ORDER_OPTIMAL
        steps = best.fitting.steps()
        both = tuple(dict.fromkeys((grounds, self.below.grounds)))
        return self.least.told(Result(status, steps, bound, (Note(note),), bound_any_order=any_order, grounds=both))
