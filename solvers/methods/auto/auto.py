"""The default method: the order of first computes, the recomputation and the bounds are improved together.

It is one anytime loop. Local search over all orders with repeats finds a good order. The exact search (`milp`) works
within that order and within the given one, from the best schedule known. A relaxation without an order bounds them all
from below. The loop ends when schedule and bound meet or nothing more can be gained.

Invariant: `bound_any_order` holds for every schedule, `bound` for all that first compute the ops in the order of the
schedule returned. Moves, rounds and iterations decide the next step, never seconds: without a time-out only the seed
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice

import numpy as np

from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.auto.above import FromAbove
from solvers.methods.auto.steps import DEAR, Steps
from solvers.methods.auto.within import HuntWithin, list_first_computes
from solvers.methods.exact.milp import Hunt
from solvers.methods.exact.options import NOTHING_KNOWN, Known
from solvers.methods.exact.small import MOST, Small
from solvers.notes import Note, SolverNote
from solvers.orders.arrays import Ints
from solvers.orders.best import GIVEN, KNOWN
from solvers.orders.wide_last import orders_with_wide_last
from solvers.problem import Grounds, Limits, Problem, Progress, Result, Status
from solvers.reductions.passes import Pass, in_two_passes
from solvers.reductions.reorder import lazy_orders
from solvers.updates import in_time

_IDLE = 16  # goes without success before giving up
_STUCK, _WORTH_MORE = 3, 1.02  # goes without success, and times the least cost, before a further tournament
_GLANCES = 2  # rounds of the first search for the least peak
_SHORT = 2  # goes from an order that nearly fits are so many times shorter before the least peak is searched for
_REORDERED = 100  # nodes from which on a search for an order alone is worth its time
_FAR_ABOVE, _LAST = 2.0, 1 / 2  # times the budget, and of the time: for `dig` where there is nothing else to do
_LEISURE = 5.0  # seconds, at least, for the least peak where it is proved that nothing fits
_DENSE = 4  # reads of a node from which on eviction walks take long
_HUNT_ROUNDS = 3  # of a hunt, before another order takes its place
_OTHERS = 2  # rounds of the hunt within the best schedule's order for each of another
_PUT_OFF = (0.9, 0.5)  # of the bytes of outputs: those made first, left to a second pass
_WIDE_LAST = 3  # orders tried in which what takes most room comes last
_ROUNDS_FIRST = 2  # of the bound over all orders: in the second it chooses where to look
_PASS = 1 / 8  # of the time, at most, for each pass
_ABSURD = 2  # times the cost of everything once


def solve(problem: Problem, budget: int, limits: Limits, options: Known = NOTHING_KNOWN) -> Result:
    """`candidates`: orders known beforehand, such as the plans of smaller budgets."""
    return Auto(problem, budget, limits).run(options.candidates)


class Auto(Steps):
    """One search over all orders for the cheapest schedule within a budget."""

    def run(self, candidates: Sequence[Sequence[int]]) -> Result:
        self.best.offer(self.given, GIVEN)
        for order in candidates:
            self.best.offer(order, KNOWN)
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
            if self.idle >= _STUCK and not self.slow and self.dearer(_WORTH_MORE) and not self.done():
                self.compete_again(self.orders_to_walk())
        return self.result()

    def spent(self) -> bool:
        """Whether nothing has succeeded for long enough."""
        return self.idle >= _IDLE and not any(not hunt.over for hunt in self.hunts)

    def begin(self) -> None:
        """Find schedules at once: local search from several orders, and walks along them; the walks come last where
        they are slow."""
        lazy = lazy_orders(self.problem)
        for order in lazy:
            self.best.offer(order, "lazy orders")
        self.anneal([np.array(self.given, np.int64)], self.moves // 10, "annealing")
        slow = self.slow
        if not slow:
            self.walk(self.problem, tuple)
        if len(self.given) >= _REORDERED and not self.done():
            self.reorder(lazy[0], walked=not slow)
        if self.large:
            self.approach_at_once()
        if self.best.fitting is None:
            if not slow:
                self.walk_low()
            self.dig(_GLANCES)
        self.starts += [self.given, *map(tuple, lazy)]
        walks = self.cheapest_walks()
        tried = self.try_walked(walks[:1])
        if self.large and self.best.fitting is not None and not self.done():
            self.raise_bound()  # its order leads further than walks do
        if self.best.fitting is None:
            self.approach_leanest(self.moves // _SHORT)
            self.dig()
        if not slow:
            self.compete(self.orders_to_walk())
        if not self.done() and self.dearer(DEAR):
            self.bound_beside(lambda: self.come_from(self.far_orders()), _ROUNDS_FIRST)
        if self.best.fitting is None:
            self.approach(self.moves // _SHORT)
            self.starts.append(tuple(self.nearest.tolist()))
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

    @cached_property
    def slow(self) -> bool:
        """Whether eviction walks take long."""
        return sum(len(node.reads) for node in self.problem.nodes) > _DENSE * len(self.given)

    def orders_to_walk(self) -> Iterator[Sequence[int]]:
        yield self.given
        yield from lazy_orders(self.problem)
        yield from islice(orders_with_wide_last(self.problem, self.budget), _WIDE_LAST)

    def far_orders(self) -> Iterator[Ints]:
        """Orders that no move from those at hand leads to; the longer they take, the dearer plans must be so far."""
        above = FromAbove(self.problem, self.best, self.copies, self.moves, self.walks)
        orders = above.orders()
        yield from islice(orders, 1)
        for put_off in _PUT_OFF:
            passes = in_two_passes(self.problem, put_off)
            if passes is not None and self.dearer(_ABSURD):
                yield np.array([*self.go_once(passes[0]), *self.go_once(passes[1])], np.int64)
        if self.dearer(_ABSURD):
            yield above.descend()
        yield from orders

    def go_once(self, part: Pass) -> tuple[int, ...]:
        """The best order of one pass."""
        one = Auto(part.problem, self.budget, self.limits.silent().share(_PASS))
        one.best.offer(one.given, GIVEN)
        if not one.done():
            one.begin()
        found = one.best.fitting or one.best.leanest
        assert found is not None, "the order as given can always run"
        return part.expand(found.steps())

    def seek_least_peak(self) -> None:
        """While nothing fits: look for an order that does, for a proof that none can, and for the least peak."""
        if len(self.given) <= MOST:
            small = Small(self.problem, self.budget, self.best, self.limits.clock, ordered=False)
            small.run()
            self.no_plan = small.infeasible
            self.raise_floor(small.bound, "all schedules")
        if self.best.fitting is None:
            hunt = Hunt(self.as_asked, self.budget, self._at_leisure() if self.infeasible else self.limits.silent())
            hunt.seek_least_peak()
            self.least = max(self.least, hunt.least, key=lambda bound: bound.peak)
            for known in (hunt.best.leanest, hunt.best.fitting):
                if known is not None:
                    self.best.offer(known.order, known.by)
        self.dig(above=_FAR_ABOVE, part=_LAST)
        self.lean()

    def _at_leisure(self) -> Limits:
        """The limits of a search after a proof, which gets no more time than the proof took."""
        limits = self.limits.silent()
        return limits.within(max(_LEISURE, limits.clock.elapsed()))

    def raise_bound(self) -> None:
        """Run local search, and beside it a round of the bound over all orders, if the bound has not had its share of
        the work."""
        early = self.below.rounds < _ROUNDS_FIRST
        if self.below.done or (not early and self.below.work > sum(hunt.hunt.work for hunt in self.hunts)):
            self.search_locally(self.more)
            return
        self.bound_beside(lambda: self.search_locally(self.more, taken=1))
        if self.below.order is not None:
            order = np.array(in_time(self.as_asked, self.below.order), np.int64)
            self.anneal([order], self.moves, "annealing from the bound")

    def bound_beside(self, search: Callable[[], None], rounds: int = 1) -> None:
        """Rounds of the bound over all orders, beside a search.

        Neither receives results of the other before both have ended, so that it does not matter which is faster.
        """
        cost = self.best.cost
        self.below.known = None if self.best.fitting is None else self.best.fitting.steps()
        enough = None if cost is None else cost / (1 + self.limits.gap)
        work, seconds, clock = self.below.work, self.below.seconds, self.limits.clock
        with ThreadPoolExecutor(1) as beside:
            raising = partial(self.below.go_on, rounds, replace(self.limits, clock=clock.timed()), enough)
            going = beside.submit(self.ledger.counted(BoundSearch.NAME, raising))
            search()
            going.result()
        clock.spend(iterations=self.below.work - work)
        self.ledger.spent(BoundSearch.NAME, self.below.seconds - seconds)
        if self.raise_floor(self.below.bound, BoundSearch.NAME):
            self.limits.report(Progress(clock.elapsed(), bound=self.floor))
        self.no_plan = self.no_plan or self.below.infeasible

    def raise_floor(self, bound: float, by: str) -> bool:
        self.floor = max(self.floor, bound)
        return self.best.raise_bound(bound, by)

    def search_within(self) -> None:
        """A round of search within one order: the best schedule's more often than others."""
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
            min(going, key=lambda hunt: hunt.count if hunt.first == own else _OTHERS * hunt.count).go()

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
            steps = None if best.leanest is None else best.leanest.steps()
            found = self.least.told(Result(Status.UNKNOWN, steps, grounds=(self.below.grounds,)))
            proof = self.least.against(self.budget, searched=self.no_plan)
            return best.attributed(found.refuted(proof) if proof else found)
        bound, grounds = self.bound()
        status, note = Status.FEASIBLE, SolverNote.BOUND_IN_OWN_ORDER
        if best.closed(any_order):
            status, note = Status.OPTIMAL, SolverNote.BOUND_IN_ANY_ORDER
        elif best.closed(bound):
            status = Status.ORDER_OPTIMAL
        steps = best.fitting.steps()
        both = tuple(dict.fromkeys((grounds, self.below.grounds)))
        lost = status is Status.FEASIBLE and not self.limits.clock.over()
        result = Result(
            status, steps, bound, (Note(note),), bound_any_order=any_order, grounds=both, patience_lost=lost
        )
        return best.attributed(self.least.told(result))
