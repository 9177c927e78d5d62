"""The strict session with planned places: one block, in which a table says where each value lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from remat_cli.model.sessions import STRICT
from remat_cli.planning.targets.candidate import Footprint
from remat_cli.planning.targets.target import LARGE_STEPS, Order, Target, arena_if_uncapped
from remat_cli.rewrite import Rewritten
from solvers.clock import Clock
from solvers.placement.largest import Placement
from solvers.placement.lifetimes import requests
from solvers.placement.narrowing import narrowed_in_block
from solvers.placement.placed import holds, placement_of
from solvers.placement.quiet import settle_in_block
from solvers.placement.settle import walk_in_block
from solvers.problem import Problem

PACKING_ROUNDS = 1  # a plan that needs more packing rounds is asked to need less


class PlannedTarget(Target):
    session = STRICT
    unit = 64
    online = False

    def footprint(
        self, model: Rewritten, aside: int, budget: int | None = None, clock: Clock | None = None
    ) -> Footprint:
        prediction = model.prediction
        fixed = prediction.problem.resident + aside
        room = 0 if budget is None else max(0, budget - fixed)
        return _footprint(
            model, aside, placement_of(prediction.problem, prediction.strict, clock, PACKING_ROUNDS, room)
        )

    def as_recorded(self, model: Rewritten, aside: int, placement: Placement) -> Footprint | None:
        lifetimes = requests(model.prediction.problem, model.prediction.strict).lifetimes
        return _footprint(model, aside, placement) if holds(lifetimes, placement) else None

    def settle(self, problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Order | None:
        return settle_in_block(problem, order, room, seed, clock)

    def arrange(self, problem: Problem, order: Sequence[int], room: int, seed: int, clock: Clock) -> Order | None:
        if len(order) > LARGE_STEPS:
            return narrowed_in_block(problem, order, room, seed, clock)
        return settle_in_block(problem, order, room, seed, clock)

    def walk(self, problem: Problem, live: int, room: int, seed: int, clock: Clock) -> Order | None:
        return walk_in_block(problem, live, room, seed, clock)


def _footprint(model: Rewritten, aside: int, placement: Placement) -> Footprint:
    promise = replace(
        model.promise,
        live=model.promise.strict,
        block=placement.block,
        arena=model.prediction.problem.resident + aside + placement.block,
        default_arena=arena_if_uncapped(model.prediction),
    )
    return Footprint(promise, placement)
