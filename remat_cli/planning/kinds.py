"""The target of each kind of session: one table."""

from __future__ import annotations

from remat_cli.model.promise import Promise
from remat_cli.model.sessions import Session
from remat_cli.planning.stock.target import StockTarget
from remat_cli.planning.targets.planned import PlannedTarget
from remat_cli.planning.targets.target import Target

TARGETS: dict[str, Target] = {target.session.runtime: target for target in (PlannedTarget(), StockTarget())}


def target_of(session: Session) -> Target:
    return TARGETS[session.runtime]


def held(peak: int, session: Session | None, promise: Promise | None) -> int:
    """The budget that a plan keeps to: what is live, and what its target counts where there is a model."""
    if session is None or promise is None or promise.arena is None:
        return peak
    return max(peak, target_of(session).counted(promise))
