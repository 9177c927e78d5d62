"""The strict session with planned places: one block, in which a table says where each value lies."""

from __future__ import annotations

from dataclasses import replace

from remat_cli.model.sessions import STRICT
from remat_cli.planning.targets.candidate import Footprint
from remat_cli.planning.targets.target import Target, arena_if_uncapped
from remat_cli.rewrite import Rewritten
from solvers.clock import Clock
from solvers.placement.largest import Placement
from solvers.placement.lifetimes import requests
from solvers.placement.memory import MemoryModel, PlannedBlock
from solvers.placement.placed import holds, placement_of
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

    def memory(self, problem: Problem, room: int) -> MemoryModel:
        return PlannedBlock(problem, room)


def _footprint(model: Rewritten, aside: int, placement: Placement) -> Footprint:
    promise = replace(
        model.promise,
        live=model.promise.strict,
        block=placement.block,
        arena=model.prediction.problem.resident + aside + placement.block,
        default_arena=arena_if_uncapped(model.prediction),
    )
    return Footprint(promise, placement)
