"""The single steps of the search over all orders, and what they share: goes, walks, and searches for what fits.

A go is one run of the annealing search: it starts from one order and makes a number of moves. A walk goes along an
order and evicts what does not fit.

Invariant: every order that a step comes to is offered to `best`; no step raises a bound for all orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from solvers.methods.anyorder.bound import BoundSearch
from solvers.methods.auto.local import LARGE, NOTHING, LocalSearch
from solvers.methods.auto.tournament import Tournament
from solvers.methods.auto.within import HuntWithin
from solvers.methods.exact.low_walks import lowest
from solvers.orders.arrays import Ints
from solvers.orders.best import Best, Weighed
from solvers.orders.bounds import peak_bound
from solvers.orders.evict import RULES, Evictor
from solvers.orders.measure import memory_of
from solvers.pebbles.copies import Copies
from solvers.pebbles.floor import STATES, dig
from solvers.pebbles.mending import Mending
from solvers.pebbles.windows import Stretches
from solvers.problem import Limits, Problem
from solvers.reductions.reorder import in_order_of
from solvers.side_by_side import in_lots, side_by_side
from solvers.stopping import Standing, usual
from solvers.updates import following_readers

_MOVES = (2_000, 200_000)  # the least and the most moves of a go
_PER_NODE = 400  # moves of a go for each node
_GOES = 8  # before the first relaxation
_FEWER = 2  # goes in a row on large graphs, where a relaxation finds more, and times as long as others at most
_MORE = 3  # between two relaxations
_NEARBY = 8  # goes in a row without success from the best order of a large graph: each temperature twice
_PATIENCE = 2  # goes without success before they become twice as long
_LONGEST = 16  # times as long, at most
_LONG = 2_000_000  # moves: no longer than this either
_WALKS, _WALKED = 9, 200_000  # eviction walks at the beginning, and how many nodes they may cover together, but for one
_TRIED = 8  # of the orders that walks found, those from which a go is begun
_TOGETHER, _PAIR = 4, 2  # goes side by side: from walks, and later
_KEPT = 3  # of what these come to, where goes begin later, with the best
_MENDING = 10  # moves of a go for each state of the search that mends what it comes to
_OF_A_TOURNAMENT = 1000  # goes, at most
_TIMES_OVER = 10  # computes for each node, at most, of an order from which goes lead anywhere in their time
_NEARER = 0.95  # of the bytes over budget that a go leaves, at most, for another from there
_MUCH_NEARER = 0.7  # the same where other ways to an order that fits have yet to be tried
_WALKED_LOW = 1 / 4  # of the time, at most, for walks that aim low while nothing fits
_DUG = 1 / 4  # of the time, at most, for the least peak where nothing else fits soon
_ABOVE = 1.1  # so far above the budget ways are sought whose orders may need less than the ways promise
DEAR = 1.1  # times the cost of everything once: from there on orders that had more room are tried as starts


class Steps:
    """`problem` is searched in; `as_asked` is the problem itself, where updates come after the readers of what they
    write over."""

    def __init__(self, problem: Problem, budget: int, limits: Limits) -> None:
        self.as_asked, self.problem = problem, following_readers(problem)
        self.budget = budget
        self.limits = limits = replace(limits, clock=limits.clock.own())
        self.enough = usual(limits.gap, limits.clock)
        self.least = peak_bound(problem)
        self.best = Best(problem, budget, limits)
        self.ledger = self.best.ledger
        self.below = BoundSearch(problem, budget)  # Bounds hold without updates too: they are for more orders then.
        self.floor = self.below.bound  # the bound that `below` had after its last round
        self.best.raise_bound(self.floor, "")
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
        self.large = large = count > LARGE
        self.first_goes, self.more, self.longest = (_FEWER, 1, _FEWER) if large else (_GOES, _MORE, _LONGEST)
        self.hunts: list[HuntWithin] = []
        self.stretched: Weighed | None = None  # the order of which no stretch can be computed at less cost
        # whether hunts within the given order and within the one with the best order alone were asked for
        self.asked = False
        self.goes = self.idle = self.tournaments = 0
        self.rivals: list[Ints] = []  # orders from which tournaments begin

    @property
    def infeasible(self) -> bool:
        return self.no_plan or self.least.peak > self.budget

    def done(self) -> bool:
        best = self.best
        known = Standing(best.cost, self.floor, self.limits.clock.work.spent, best.won_at)
        return self.infeasible or any(enough(known) for enough in self.enough)

    def compete(self, orders: Iterable[Sequence[int]]) -> None:
        """Where plans are dear so far, if there are any: many short goes from walks along these orders."""
        if not self.done() and self.dearer(DEAR):
            self.compete_again(orders)

    def compete_again(self, orders: Iterable[Sequence[int]]) -> None:
        """The same from those walks, with other seeds, and later from the best order too."""
        self.rivals = self.rivals or [self.walk_along(order) for order in orders]
        known = [self.best.order] if self.tournaments and self.best.order is not None else []
        first = self.tournaments * _OF_A_TOURNAMENT
        left = Tournament(self.local, self.best, self.moves, first).run([*self.rivals, *known])
        self.tournaments += 1
        self.starts[:0] = [tuple(order.tolist()) for order in left]

    def walk_along(self, order: Sequence[int]) -> Ints:
        """The best of some eviction walks."""
        own = Best(self.problem, self.budget, self.limits.silent())
        way = in_order_of(self.problem, order)
        evictor = Evictor(way.problem, self.limits.clock)
        for rule in RULES[: self.walks]:
            own.offer(way.expand(evictor.run(self.budget, rule, self.limits.seed).tolist()), "walks")
        known = own.fitting or own.leanest
        return np.array(order, np.int64) if known is None else known.order

    def come_from(self, orders: Iterator[Ints]) -> None:
        """Where plans are dear so far, if there are any: goes from these orders."""
        while not self.done() and self.dearer(DEAR):
            before = self.best.fitting
            with self.ledger.at_work("larger budgets"):
                order = next(orders, None)
            if order is None:
                return
            self.best.offer(order, "larger budgets")
            self.starts.insert(0, tuple(order.tolist()))
            self.anneal([order], self.moves, "annealing from larger budgets")
            if self.best.fitting is not before:
                self.stretch()

    def dearer(self, times: float) -> bool:
        """Whether nothing fits that costs at most so many times everything once."""
        return self.best.cost is None or self.best.cost > int(sum(node.cost for node in self.problem.nodes) * times)

    def reorder(self, order: Sequence[int], walked: bool) -> None:
        """Search for an order of first computes of a low peak, and walk along it."""
        with self.ledger.at_work("reordering"):
            given = np.array(order, np.int64)
            first = self.local.go(given, 0, self.moves // 2, self.limits.clock, reorder_only=True).order
        self.reordered = tuple(first.tolist())
        if walked:
            way = in_order_of(self.problem, self.reordered)
            self.walk(way.problem, way.expand, "walks along another order")
        self.starts.append(self.reordered)

    def dig(self, rounds: int = len(STATES), above: float = _ABOVE, part: float = _DUG) -> None:
        """Search for the least peak while nothing fits: an order of low enough peak is a schedule that fits.

        `above`: ways are sought up to so many times the budget; `part` of the time is for it, at most."""
        if self.best.fitting is None and not self.done():
            assert self.best.leanest is not None, "the order as given can always run"
            known = min(self.best.leanest.peak, int(self.budget * above) + 1)
            with self.ledger.at_work("least peak"):
                found = dig(self.best, known, self.limits.silent().share(part), rounds)
            self.least = max(self.least, found, key=lambda bound: bound.peak)

    def walk_low(self) -> None:
        """Walks that aim at less than the leanest order takes, until one fits."""
        if self.best.fitting is None and not self.done():
            limits = self.limits.silent().share(_WALKED_LOW)
            with self.ledger.at_work("low walks"):
                low = lowest(self.problem, limits, RULES[: self.walks], enough=self.budget).leanest
            if low is not None:
                self.best.offer(low.order, "low walks")

    def lean(self) -> None:
        """Where nothing fits: find how small a budget would do."""
        lean = Best(self.problem, -1, self.limits.silent())
        if self.best.fitting is None and self.best.leanest is not None:
            lean.offer(self.best.leanest.order, self.best.leanest.by)
            with self.ledger.at_work("least peak"):
                found = dig(lean, self.best.leanest.peak, self.limits.silent().share(_DUG))
            self.least = max(self.least, found, key=lambda bound: bound.peak)
            if lean.leanest is not None:
                self.best.offer(lean.leanest.order, "least peak")

    def approach_leanest(self, moves: int) -> None:
        """Goes from the leanest order, while nothing fits, if it is near the budget and not too long."""
        leanest = self.best.leanest
        if self.best.fitting is not None or leanest is None or len(leanest.order) > _TIMES_OVER * len(self.given):
            return
        over = int(np.maximum(memory_of(self.best.arrays, leanest.order) - self.budget, 0).sum())
        if over < self.missing:
            self.missing, self.nearest = over, leanest.order
            self.approach(moves)

    def approach(self, moves: int) -> None:
        """Goes from the order that nearly fits, until it does, while some of them still come a good part nearer."""
        without = 0
        while self.missing > 0 and without < _PATIENCE and not self.done():
            before = self.missing
            self.anneal([self.nearest], moves, "annealing towards the budget")
            self.mend(moves // _MENDING)
            without = 0 if self.missing < _NEARER * before else without + 1

    def approach_at_once(self) -> None:
        """Goes from the order that nearly fits while each comes much nearer: on large graphs of which every op reads
        several others, walks that rebuild what they let go lead nowhere."""
        while self.best.fitting is None and not self.done():
            before = self.missing
            self.anneal([self.nearest], self.moves, "annealing at once")
            if self.missing > _MUCH_NEARER * before:
                return

    def mend(self, states: int) -> None:
        """Compute the order that nearly fits anew where it takes more than the budget."""
        if self.missing in (0, NOTHING) or self.done():
            return
        mending = Mending(self.copies, self.best, states)
        with self.ledger.at_work("mending"):
            order = mending.run(self.nearest)
        self.best.offer(order, "mending")
        over = int(mending.excess(order).sum())
        if over < self.missing:
            self.missing, self.nearest = over, order

    @cached_property
    def copies(self) -> Copies:
        return Copies(self.as_asked)

    def walk(self, problem: Problem, expand: Callable[[Sequence[int]], tuple[int, ...]], by: str = "walks") -> None:
        """Evict along an order."""
        evictor = Evictor(problem, self.limits.clock)
        for rule in RULES[: self.walks]:
            if self.done():
                return
            with self.ledger.at_work(by):
                order = expand(evictor.run(self.budget, rule, self.limits.seed).tolist())
            found = self.best.offer(order, by)
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
        for lot in in_lots(walks, _TOGETHER):
            if self.done():
                break
            clock, moves = self.limits.clock, self.moves // 2
            goes = [partial(self.local.go, walk.order, 0, moves, clock) for walk in lot]
            counted = [self.ledger.counted("annealing from walks", go) for go in goes]
            for reached in side_by_side(counted):
                known = self.best.offer(reached.order, "annealing from walks")
                if known is not None and self.best.fits(known):
                    orders.append(known)
            clock.spend(moves * len(lot))
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
        with self.ledger.at_work("stretches"):
            better = Stretches(self.copies, self.best, self.moves).improve(known)
        self.best.offer(better.order, "stretches")
        self.stretched = self.best.fitting

    def anneal(self, orders: Sequence[Ints], moves: int, by: str, taken: int = 0) -> None:
        """A go from each of these orders, side by side. `taken`: processors that something else is at work on."""
        if self.done():
            return
        clock = self.limits.clock
        goes = [partial(self.local.go, order, self.goes + turn, moves, clock) for turn, order in enumerate(orders)]
        self.goes += len(goes)
        for order, over in side_by_side([self.ledger.counted(by, go) for go in goes], taken):
            self.best.offer(order, by)
            if over < self.missing:
                self.missing, self.nearest = over, order
        clock.spend(moves * len(goes))

    def search_locally(self, goes: int, taken: int = 0) -> None:
        """Run so many goes, in pairs, or fewer and longer ones of the same length in all where success is rare."""
        left = goes
        while left > 0 and not self.done():
            longer = min(1 << self.idle // _PATIENCE, self.longest)
            before = self.best.fitting
            starts = [self.next_start(self.goes + turn) for turn in range(_PAIR if left > longer else 1)]
            self.anneal(starts, max(self.moves, min(longer * self.moves, _LONG)), "annealing", taken)
            self.idle = 0 if self.best.fitting is not before else self.idle + len(starts)
            left -= longer * len(starts)

    def search_nearby(self) -> None:
        """Goes from the best order known, until none of so many in a row finds a better one: on large graphs they find
        more in their time than a relaxation does."""
        without = 0
        while without < _NEARBY and self.best.order is not None and not self.done():
            before = self.best.fitting
            self.anneal([self.best.order] * _PAIR, self.moves, "annealing nearby")
            without = 0 if self.best.fitting is not before else without + _PAIR

    def next_start(self, go: int) -> Ints:
        """The best order known, and in turn one of the other starts."""
        known = self.best.order
        if known is None and self.large:
            return self.nearest
        found = [(hunt, hunt.hunt.best.fitting) for hunt in self.hunts]
        others = [*self.starts, *(hunt.way.expand(best.steps()) for hunt, best in found if best is not None)]
        turn, own = divmod(go, 2)
        if own and others:
            return np.array(others[turn % len(others)], np.int64)
        return self.nearest if known is None else known
