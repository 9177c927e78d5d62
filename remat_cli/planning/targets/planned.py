"""The strict session with planned places: one block, in which a table says where each value lies."""

from __future__ import annotations

from dataclasses import replace

from remat_cli.model.sessions import STRICT
from remat_cli.planning.targets.candidate import Footprint
from remat_cli.planning.targets.target import Target, arena_if_uncapped
from remat_cli.rewrite import Rewritten
from solvers.clock import Clock
from solvers.placement.lifetimes import Requested
from solvers.placement.lives import Lives
from solvers.placement.memory import MemoryModel, PlannedBlock
from solvers.placement.packing import SURE, pack
from solvers.placement.placed import Placement, holds
from solvers.problem import Problem


class PlannedTarget(Target):
    session = STRICT
    unit = 64
    online = False

    def footprint(
        self, model: Rewritten, aside: int, budget: int | None = None, clock: Clock | None = None
    ) -> Footprint:
        fixed, lifetimes = model.prediction.problem.resident + aside, _lifetimes(model)
        room = 0 if budget is None else max(0, budget - fixed)
        return _footprint(model, fixed, lifetimes, pack(lifetimes, clock=clock, effort=SURE, room=room))

    def as_recorded(self, model: Rewritten, aside: int, placement: Placement) -> Footprint | None:
        fixed, lifetimes = model.prediction.problem.resident + aside, _lifetimes(model)
        return _footprint(model, fixed, lifetimes, placement) if holds(lifetimes, placement) else None

    def memory(self, problem: Problem, room: int) -> MemoryModel:
        return PlannedBlock(problem, room)


def _lifetimes(model: Rewritten) -> Lives:
    return Requested(model.prediction.problem).by(model.prediction.strict.order())


def _footprint(model: Rewritten, fixed: int, lifetimes: Lives, placement: Placement) -> Footprint:
    promise = replace(
        model.promise,
        live=model.promise.strict,
        block=placement.block,
        arena=fixed + placement.block,
        default_arena=arena_if_uncapped(model.prediction.problem.resident, lifetimes),
    )
    return Footprint(promise, placement)
