"""The strict session with the runtime's arena, capped: one region, whose free memory is in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from remat_cli.model.promise import Promise
from remat_cli.model.sessions import CAPPED
from remat_cli.planning.targets.candidate import Footprint
from remat_cli.planning.targets.target import Order, Target, arena_if_uncapped
from remat_cli.rewrite import Rewritten
from solvers.clock import Clock
from solvers.placement.arranging import arrange_in_arena
from solvers.placement.region import ALIGNMENT, fits, least_arena
from solvers.placement.settle import walked
from solvers.plan import Plan
from solvers.problem import Problem
from solvers.simulate import simulate


class ArenaTarget(Target):
    session = CAPPED
    unit = ALIGNMENT
    narrows = False

    def footprint(
        self, model: Rewritten, aside: int, budget: int | None = None, clock: Clock | None = None
    ) -> Footprint:
        """A region larger than one that is enough need not be enough, so the budget's own region is tried."""
        prediction, live = model.prediction, model.promise.strict
        assert live is not None
        total = least_arena(prediction.problem, prediction.strict, live) + prediction.rounding + aside
        if budget is not None and total > budget:
            room = budget - aside - prediction.rounding - prediction.problem.resident
            total = budget if fits(prediction.problem, prediction.strict, room) else total
        return Footprint(replace(model.promise, live=live, arena=total, default_arena=arena_if_uncapped(prediction)))

    def estimate(self, problem: Problem, plan: Plan) -> int:
        return least_arena(problem, plan, simulate(problem, plan).peak)

    def needed(self, promise: Promise, budget: int) -> int:
        """The plan's own budget, because a capped arena behaves differently under each cap."""
        return budget

    def settle(self, problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Order | None:
        return arrange_in_arena(problem, order, room, seed, clock, reorder_only=True)

    def arrange(self, problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Order | None:
        return arrange_in_arena(problem, order, room, seed, clock)

    def walk(self, problem: Problem, live: int, room: int, seed: int, clock: Clock) -> Order | None:
        return walked(problem, live, room, seed, clock)
